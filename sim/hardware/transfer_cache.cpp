// Objects that cores give each other: see transfer_cache.h.
#include "hardware/transfer_cache.h"

#include <algorithm>
#include <numeric>

#include "hardware/unit.h"

namespace annex::sim {

namespace {

constexpr Address kPointer = 8;  // bytes
constexpr Address kPointers = Address{1} << 17;
// From one class to the next: not so that all locks are in the same set of a cache.
constexpr Address kOfClass = kLine + kPointers * kPointer + 8 * kLine;
constexpr Address kStacks = kUnitMemory + (Address{3} << 32);

constexpr Address lock_of(unsigned size_class) { return kStacks + size_class * kOfClass; }

}  // namespace

TransferCache::TransferCache(unsigned classes, UnitMemory memory) : memory_(memory), stacks_(classes) {
  memory_.map(kStacks, kStacks + classes * kOfClass);
}

Cycles TransferCache::lock(unsigned core, unsigned size_class, Cycles at) {
  Stack& stack = stacks_[size_class];
  ++statistics_.locked;
  const Cycles asked = at;
  // Nobody waits for what began later than itself.
  if (stack.asked <= at && at < stack.released) {
    ++statistics_.waits;
    statistics_.waited += stack.released - at;
    at = stack.released;
  }
  stack.asked = asked;
  return memory_.lock(core, lock_of(size_class), at);
}

Cycles TransferCache::move(unsigned core, unsigned size_class, uint64_t first, uint32_t objects, bool store,
                           Cycles at) {
  Cycles done = at;
  Address last_line = 0;
  for (uint64_t i = first; i < first + objects; ++i) {
    const Address pointer = lock_of(size_class) + kLine + i % kPointers * kPointer;
    if (line_of(pointer) == last_line) continue;
    last_line = line_of(pointer);
    done = std::max(done, store ? memory_.store(core, pointer, at) : memory_.load(core, pointer, at));
  }
  return done;
}

TransferCache::Batch TransferCache::take(unsigned core, unsigned size_class, uint32_t most, Cycles at) {
  Stack& stack = stacks_[size_class];
  const Cycles locked = lock(core, size_class, at);
  const auto objects = static_cast<uint32_t>(std::min<uint64_t>(most, stack.objects));
  stack.objects -= objects;
  stack.released = move(core, size_class, stack.objects, objects, false, locked);
  statistics_.held += stack.released - locked;
  return {objects, stack.released};
}

Cycles TransferCache::put(unsigned core, unsigned size_class, uint32_t objects, Cycles at) {
  Stack& stack = stacks_[size_class];
  const Cycles locked = lock(core, size_class, at);
  stack.released = move(core, size_class, stack.objects, objects, true, locked);
  stack.objects += objects;
  statistics_.held += stack.released - locked;
  return stack.released;
}

uint64_t TransferCache::objects() const {
  return std::accumulate(stacks_.begin(), stacks_.end(), uint64_t{0},
                         [](uint64_t sum, const Stack& stack) { return sum + stack.objects; });
}

}  // namespace annex::sim
