// Canaries: eight bytes behind what the program asked for, checked when the block is freed. Their value is different
// for each block and process: the seal of core/sealed_words.h, rotated. None begins with a zero byte, so that a
// string's terminating zero which is written one byte too far is seen.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/sealed_words.h"
#include "harden/live_blocks.h"
#include "policy/policy.h"

namespace annex::harden {

inline uint64_t canary_of(const void* block) {
  return std::rotl(SealedWords::seal_of(static_cast<const Block*>(block)), 13) | 1;
}

// `canary` is the block's.
inline void set_canary(void* block, size_t room, uint64_t canary) {
  if (!Policy::kCanaries) return;
  memcpy(static_cast<char*>(block) + room, &canary, kCanaryBytes);
}
inline void set_canary(void* block, size_t room) { set_canary(block, room, canary_of(block)); }
inline bool canary_stands(const void* block, size_t room) {
  if (!Policy::kCanaries) return true;
  uint64_t found;
  memcpy(&found, static_cast<const char*>(block) + room, kCanaryBytes);
  return found == canary_of(block);
}

}  // namespace annex::harden
