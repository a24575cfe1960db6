// Where a trial's wrong call points: an address of the kind that is asked for, which is not the start of a block in
// use.
#pragma once

#include <cstddef>

#include "common/random.h"
#include "fuzz/misuse_crew.h"
#include "fuzz/misuse_record.h"

namespace annex_test {

struct Target {
  Wrong wrong = Wrong::kNothing;  // the kind that it came to be: what was asked for, unless there is no such address
  char* address = nullptr;
  std::size_t bytes = 0;  // of the block that the address was, or is in; 0 where there is none
};

// May allocate, and free what it then points at, by threads of the crew. Where the trial has nothing of the kind (no
// block was freed, say), the target is of another kind.
Target choose_target(Wrong wanted, Random* random, Crew* crew);

}  // namespace annex_test
