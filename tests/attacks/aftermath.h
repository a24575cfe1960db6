// What a program does after the misuse: it goes on to allocate and free, correctly. So later checks have their chance,
// and it shows what the allocator now hands out.
#pragma once

#include <cstddef>

#include "attack.h"
#include "blocks.h"
#include "worker.h"

namespace attacks {

// What the attacker is after.
struct Aim {
  const Blocks* victims = nullptr;  // a new block that shares bytes with one of these
  const void* place = nullptr;      // a new block that lies on this place, which is not the heap's to give
  std::size_t bytes = 0;            // of the place
};

// Blocks of several sizes, filled, looked at and freed, twice. Says what the attacker has gained by it: nullptr,
// nothing.
const char* ordinary_use(const Aim& aim = {});

// Marks the end of the misuse, lets the attacker and the victim allocate blocks of that size in turns, and judges:
// exploited as soon as any of them is what the attacker is after, or two of them are one. Else they are freed, and
// ordinary use follows. With another thread, that one is the attacker, and the two exchange blocks before.
Verdict go_on(std::size_t bytes, const Aim& aim = {}, Worker* other = nullptr);

}  // namespace attacks
