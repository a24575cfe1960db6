// The books of the page heap: how much memory is what. What is decided by them is in commitment.h.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "pages/granule.h"

namespace annex {

// Bytes; changed under the lock, read by any thread.
class Gauge {
 public:
  operator size_t() const { return __atomic_load_n(&bytes_, __ATOMIC_RELAXED); }
  void operator=(size_t bytes) { __atomic_store_n(&bytes_, bytes, __ATOMIC_RELAXED); }
  void operator+=(size_t bytes) { *this = bytes_ + bytes; }
  void operator-=(size_t bytes) { *this = bytes_ - bytes; }

 private:
  size_t bytes_ = 0;
};

// The largest of what was live of late, in bytes: in this window of time and in the one before it.
class NeededLately {
 public:
  operator size_t() const { return std::max(in_this_, in_last_); }
  void note(size_t live) { in_this_ = std::max(in_this_, live); }
  // It is now_ms, and so many bytes are live: where the window is over, another one of that length begins.
  void pass(uint64_t now_ms, uint64_t window_ms, size_t live) {
    if (now_ms < ends_ms_) return;
    if (ends_ms_ != 0) {
      in_last_ = now_ms < ends_ms_ + window_ms ? in_this_ : live;
      in_this_ = live;
    }
    ends_ms_ = now_ms + window_ms;
  }

 private:
  size_t in_this_ = 0;
  size_t in_last_ = 0;
  uint64_t ends_ms_ = 0;  // the window
};

// Bytes, unless something else is said. Under the lock, but for gauges and atomics.
struct Books {
  size_t committed = 0;  // readable and writable, metadata included
  size_t metadata = 0;
  size_t live = 0;      // in runs that are slabs or spans
  size_t promised = 0;  // to be live: runs that are being taken at this moment
  size_t spans = 0;     // of live, in spans
  Gauge dirty;          // free and perhaps resident
  NeededLately needed;
  size_t purged_total = 0;
  size_t huge = 0;          // for which huge pages are asked
  uint32_t huge_ended = 0;  // pieces of 2 MiB for which they are not any more
  // How much was slabs', and how much of it touched, when what they take began to be counted; and whether they have
  // filled most of what they took (commitment.h: proved to grow).
  size_t slabs_then = 0;
  size_t touched_then = 0;
  bool slabs_fill = true;

  // Of spans of 2 MiB or more that were made of fresh memory: one that is looked at when it is freed, how many have
  // been made since, and what was found the last time.
  const Span* watched_span = nullptr;
  uint32_t made_since = 0;
  bool filled = false;

  // Whether addresses are limited, or what is writable: by RLIMIT_AS or RLIMIT_DATA at the start, or since the system
  // has refused memory. Then none are left out for the sake of huge pages, of moving, or of chance.
  bool addresses_are_scarce = false;
  bool purger_runs = false;                    // or is about to
  uint64_t purger_again_ms = 0;                // not before: it could not be made
  uint32_t keepers = 0;                        // threads that give back for the others (page_heap.h)
  alignas(64) std::atomic<size_t> touched{0};  // of live, ever written: slabs' blocks that were ever made, and spans
  void note_touched(size_t bytes) { touched.fetch_add(bytes, std::memory_order_relaxed); }
  void note_untouched(size_t bytes) { touched.fetch_sub(bytes, std::memory_order_relaxed); }
  // What support threads look at all the time is on a line that is seldom written.
  alignas(64) Gauge peak;                     // the largest live so far
  std::atomic<bool> growth_left{false};       // to a keeper: the growth rule
  std::atomic<bool> has_thread_heaps{false};  // of which some may not be used while others are
  std::atomic<bool> purger_wanted{false};     // and not started yet
  std::atomic<bool> slow_path_called{false};  // that, or another process asks for something (os/control.h): read on
                                              // every slow path of malloc
  std::atomic<bool> purger_sleeps{false};     // without a timer, or is about to: read where something may be for it
  std::atomic<size_t> beside{0};              // metadata mapped without the lock; neither in metadata nor committed
};

}  // namespace annex
