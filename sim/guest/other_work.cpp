// Work between the allocator's calls: see other_work.h.
#include "guest/other_work.h"

namespace annex::sim {

OtherWork::OtherWork(uint32_t instructions)
    : whole_(instructions / kAtOnce), block_(block_of(kAtOnce)), rest_(block_of(instructions % kAtOnce)) {}

Block OtherWork::block_of(uint32_t instructions) {
  Block block;
  block.instructions = block.slots = instructions;
  for (uint32_t i = 0; i < instructions; ++i) {
    const Register chain = i % 2 == 0 ? kLoaded : kResult;  // of no instruction of the program's
    block.uops.push_back({.kind = UopClass::kAlu,
                          .first = true,
                          .instruction = static_cast<uint16_t>(i),
                          .sources = {chain},
                          .destinations = {chain}});
  }
  return block;
}

void OtherWork::after_call(Core& core, Address next) {
  const auto run = [&](Block& block) {
    block.start = block.last = block.fall_through = next;
    core.run(block, {}, next, Origin::kProgram);
  };
  for (uint32_t i = 0; i < whole_; ++i) run(block_);
  if (rest_.instructions > 0) run(rest_);
}

}  // namespace annex::sim
