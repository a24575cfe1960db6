// What a process's heap holds at a moment, in bytes where nothing else is said. docs/live-view.md says what each means.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/size_class.h"
#include "process/target.h"

namespace annex::inspect {

struct ClassCounts {
  uint64_t slabs = 0;
  uint64_t bytes = 0;     // of the slabs
  uint64_t blocks = 0;    // that have room in them
  uint64_t made = 0;      // blocks that were ever made: their memory has been touched
  uint64_t in_holes = 0;  // of these, whose memory has gone back
  uint64_t used = 0;      // blocks
};

struct HeapCounts {
  uint64_t owner = 0;  // what its slabs call it
  enum class Holder { kThread, kEnded, kUnknown } holder = Holder::kUnknown;
  long thread = 0;  // the kernel's number, of kThread; 0: not known
  uint64_t slabs = 0;
  uint64_t bytes = 0;    // of its slabs
  uint64_t used = 0;     // bytes of blocks
  uint64_t refills = 0;  // counts, since the process began
  uint64_t batches = 0;
};

struct Snapshot {
  pid_t process = 0;
  std::string program, version;
  uint64_t unix_ms = 0;  // when

  uint64_t resident = 0, peak_resident = 0;  // of the whole process

  // As annex_stats has them (docs/statistics.md).
  uint64_t committed = 0, metadata = 0, slabs = 0, used = 0, used_spans = 0, dirty = 0, peak_in_use = 0;
  uint64_t purged_total = 0, huge_page_bytes = 0, heap_count = 0, arenas = 0, slab_refills = 0, remote_batches = 0;
  uint64_t support_cpu_us = 0;

  uint64_t span_count = 0;
  uint64_t unclear_granules = 0;  // whose records were being changed, each time that they were looked at

  ClassCounts classes[kClasses];
  std::vector<HeapCounts> heaps;  // the newest first
  HeapCounts no_heap;  // slabs that heaps have taken beforehand; offload flavour: those of threads without one

  uint64_t free_in_slabs() const { return slabs - (used - used_spans); }
  // Of that, what has been touched and not given back: it may be resident.
  uint64_t free_touched() const;
  // Of all that is touched, the part in which nothing is in use: 0 to 1.
  double fragmentation() const;
};

// How the resident memory is asked for: exactly, for which the system looks at each of the process's pages, and its
// calls of mmap may have to wait; or at once, with what the kernel has counted, which may be a little behind.
enum class Resident { kExact, kAtOnce };

Snapshot take_snapshot(const Target& target, Resident how = Resident::kExact);

}  // namespace annex::inspect
