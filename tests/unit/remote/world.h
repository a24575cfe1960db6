// One heap with its inbox and a few slabs, small enough that every order of what happens to them can be tried. It keeps
// count of what src/remote must not lose: each block that is sent comes back once, a slab is let go of once and not
// touched afterwards, and nothing waits where nobody looks.
#pragma once

#include <string>
#include <vector>

#include "unit/remote/scheduler.h"

namespace annex::test {

// What a thread does, one thing after the other. A capital and digits: it posts those blocks of that slab as one
// message
// ("A0", "B01"), or, with an exclamation mark, sends them to the slab's batch ("A0!"). The rest is for the heap's
// owner: "take in", "pool", "unpool".
using Program = std::vector<std::string>;

// The slabs: A never becomes complete, since its third block is never sent. B is complete with both blocks, C and D
// with their only one. D is the heap's current slab until the owner leaves the heap.
struct Plan {
  bool pooled;                    // the heap, at the start
  Program before;                 // done before the threads begin
  std::vector<Program> programs;  // one a thread
};

Scheduler::Scenario* make_world(const Plan& plan);

}  // namespace annex::test
