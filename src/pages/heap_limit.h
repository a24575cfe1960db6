// ANNEX_MAX_HEAP has refused memory: said once, when the program is told, by which time no lock is held.
#pragma once

#include <atomic>

#include "os/message.h"
#include "os/options.h"

namespace annex {

enum class HeapLimit { kHeld, kRefused, kSaid };

inline constinit std::atomic<HeapLimit> heap_limit{HeapLimit::kHeld};

inline void heap_limit_refuses() {
  HeapLimit held = HeapLimit::kHeld;
  heap_limit.compare_exchange_strong(held, HeapLimit::kRefused, std::memory_order_relaxed);
}

inline void say_if_heap_limit_refused() {
  HeapLimit refused = HeapLimit::kRefused;
  if (!heap_limit.compare_exchange_strong(refused, HeapLimit::kSaid, std::memory_order_relaxed)) return;
  char buffer[120];
  os::Text text(buffer, sizeof buffer - 1);
  text << "an allocation fails that would pass ANNEX_MAX_HEAP, " << uint64_t{os::options.max_heap_bytes}
       << " bytes (said once)";
  buffer[text.stored()] = '\0';
  os::warn(buffer);
}

}  // namespace annex
