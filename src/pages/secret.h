// What the hardened build mixes into what it writes beside the program's data. Drawn once, when the library sets itself
// up; a child process has its parent's.
//
// Synchronization: written before the first block is made; constant from then on.
#pragma once

#include <cstdint>

namespace annex {

struct Secret {
  uint64_t addend;
  uint64_t factor;  // both odd
  uint64_t second_factor;

  void draw();
};
extern constinit Secret secret [[gnu::visibility("hidden")]];

}  // namespace annex
