// What is reported of sampled blocks, and the signal by which the system tells of what was done to their pages.
#pragma once

#include "sample/pages.h"

namespace annex::sample {

// From now on a SIGSEGV is looked at: one at a sampled block's page ends the process with a report, any other goes to
// whoever had it before. A program that handles the signal itself later on has its way, and there is no report.
void catch_faults();

// The process ends: with a line of the kind, the address and the block, and call stacks. `page` may be nullptr.
[[noreturn, gnu::cold]] void end_process(const char* what, const void* address, const Page* page);

}  // namespace annex::sample
