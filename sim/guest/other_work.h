// Work between the allocator's calls, beside the program's own: for experiments on how densely programs may call.
//
// After each call of malloc, free or one of their family its thread runs so many instructions more. They are additions
// in registers, in two chains, so that two end in a cycle; they read no memory and know nothing of the call's pointer.
#pragma once

#include "machine/core.h"
#include "machine/uop.h"

namespace annex::sim {

class OtherWork {
 public:
  // `instructions`: after each call; 0: none.
  explicit OtherWork(uint32_t instructions);

  // The call is over, and the program goes on at `next`.
  void after_call(Core& core, Address next);

 private:
  static constexpr uint32_t kAtOnce = 64;  // instructions

  static Block block_of(uint32_t instructions);

  const uint32_t whole_;  // runs of the block
  Block block_;
  Block rest_;
};

}  // namespace annex::sim
