// One trial of the misuse fuzzer, in a process of its own: correct use, as the seed has it, and then one wrong call.
#pragma once

#include <cstdint>

#include "fuzz/misuse_record.h"

namespace annex_test {

// Returns the exit code; a trial with a wrong call should not return at all.
int run_trial(std::uint64_t seed, Record* record);

}  // namespace annex_test
