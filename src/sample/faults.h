// Reports about sampled blocks, and the handler of SIGSEGV, the signal that an access to their guard pages causes.
#pragma once

#include "sample/pages.h"

namespace annex::sample {

// Installs the handler. An access to a guard page, or to a freed block's page, ends the process with a report; any
// other SIGSEGV goes to the handler that was there before. Where the program installs its own later, there is no
// report.
void catch_faults();

// Ends the process, with a line that says what was wrong, the address and the block, and with call stacks. `page` is
// the block's, or nullptr where it is not known.
[[noreturn, gnu::cold]] void end_process(const char* what, const void* address, const Page* page);

}  // namespace annex::sample
