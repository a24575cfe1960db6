// Work between the allocator's calls: see other_work.h.
#include "guest/other_work.h"

#include <algorithm>
#include <vector>

namespace annex::sim {

OtherWork::OtherWork(const ProgramParameters& parameters, MemorySystem& memory, unsigned cores)
    : instructions_(parameters.work), memory_(memory) {
  if (instructions_ == 0 || parameters.memory == "none") return;
  for (unsigned core = 0; core < cores; ++core) profiles_.emplace_back(core);
}

void OtherWork::saw(unsigned core, uint32_t instructions, std::span<const MemoryAccess> accesses) {
  Profile& profile = profiles_[core];
  profile.instructions += instructions;
  for (const MemoryAccess& access : accesses) {
    if (access.prefetch) continue;
    ++profile.accesses;
    profile.stores += access.store;
    profile.distances.add(profile.stack.touch(line_of(access.address)));
  }
}

// One more, if the program has accesses that often; of the lines that it knows, and whose page is there.
bool OtherWork::next_access(Profile& profile, unsigned core, MemoryAccess& access) {
  profile.owed += profile.accesses;
  if (profile.instructions == 0 || profile.owed < profile.instructions) return false;
  profile.owed -= profile.instructions;
  const uint64_t which = profile.random.next();
  const Address line = profile.stack.at(profile.distances.drawn(which, profile.random.next()));
  access.address = line << kLineShift;
  if (!memory_.pages().present(access.address)) return false;
  profile.stack.touch(line);
  const bool writes = profile.random.next() % profile.accesses < profile.stores;
  access.store = writes && memory_.state_of(core, access.address) >= State::kExclusive;
  access.bytes = 8;
  return true;
}

void OtherWork::run(Core& core, uint32_t instructions, Address next) {
  Block block;
  block.instructions = block.slots = instructions;
  block.start = block.last = block.fall_through = next;
  std::vector<MemoryAccess> accesses;
  for (uint32_t i = 0; i < instructions; ++i) {
    Uop uop = {.first = true, .instruction = static_cast<uint16_t>(i)};
    MemoryAccess access{.instruction = uop.instruction};
    if (looks() && next_access(profiles_[core.index()], core.index(), access)) {
      uop.kind = access.store ? UopClass::kStore : UopClass::kLoad;
      accesses.push_back(access);
    } else {
      const Register chain = i % 2 == 0 ? kLoaded : kResult;  // of no instruction of the program's
      uop.kind = UopClass::kAlu;
      uop.sources[0] = chain;
      uop.destinations = {chain};
    }
    block.uops.push_back(uop);
  }
  core.run(block, accesses, next, Origin::kProgram);
}

void OtherWork::after_call(Core& core, Address next) {
  for (uint32_t left = instructions_; left > 0; left -= std::min(left, kAtOnce))
    run(core, std::min(left, kAtOnce), next);
}

}  // namespace annex::sim
