// Where sampled blocks lie: tells their addresses from all others.
#pragma once

#include <cstddef>
#include <cstdint>

namespace annex::sample {

// Empty where nothing is sampled. Constant once there is a second thread.
struct Place {
  uintptr_t start = 0;
  size_t bytes = 0;
};
extern constinit Place place [[gnu::visibility("hidden")]];

[[gnu::always_inline]] inline bool contains(const void* address) {
  return reinterpret_cast<uintptr_t>(address) - place.start < place.bytes;
}

}  // namespace annex::sample
