// Granules and their records: the vocabulary of the page heap.
//
//   arena     one range of addresses in which memory is mapped as needed, cut into granules
//   granule   64 KiB of an arena; the unit in which slabs and spans are made
//   run       consecutive granules that are one thing: a slab, a span, or free
//   slab      a run whose blocks all have one size class; it belongs to one heap (core/slab_record.h)
//   span      a run that is one large block
//   clean     free and never touched, or given back to the system: reads as zero, costs no memory
//   dirty     free and (perhaps) still resident
//   unmapped  free, and not even mapped any more: long runs that went back, where addresses are scarce shorter ones too
//
// Metadata is segregated (SpeedMalloc section 4, NextGen-Malloc section 3): an array of records of 128 bytes, one for
// each granule, stands apart, so that a block and its metadata never share a line or a page, and
//
//   granule_of(p) = metadata + (p - start) / 64 KiB
//
// needs no load. A run's record is that of its first granule (its head). What all records begin with is Granule; what
// follows depends on what the run is: FreeRun and Span here, Slab in core/slab_record.h. Whoever changes `kind` changes
// by it which of them the record is.
//
// Synchronization, unless a field says otherwise: a run in use belongs to whoever uses it, any other to the holder of
// the page heap's lock (pages/locked.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "os/guards.h"

namespace annex {

struct Layout;  // observe/inspection.cpp: tells other processes where private members are

inline constexpr size_t kGranuleShift = 16;
inline constexpr size_t kGranule = size_t{1} << kGranuleShift;
inline constexpr size_t kHugePage = size_t{2} << 20;
inline constexpr uint32_t kGranulesPerHugePage = kHugePage / kGranule;

// To a multiple of a power of two.
template <class T>
constexpr T round_up(T value, T multiple) {
  return (value + multiple - 1) & ~(multiple - 1);
}
template <class T>
constexpr T round_down(T value, T multiple) {
  return value & ~(multiple - 1);
}
constexpr size_t granules_for(size_t bytes) { return (bytes + kGranule - 1) >> kGranuleShift; }

enum class Kind : uint8_t {
  kNone,       // never used, or inside a run
  kSlab,       // head of a slab
  kSlabTail,   // a later granule of a slab: `back` granules after its head
  kSpan,       // head of a span
  kFree,       // head or last granule of a free run
  kTaken,      // head or last granule of a run that is neither: it is being taken, given back or populated, or is out
               // of use for good; also the last granule of a span
  kNoBytes,    // hardened build: head of the span where blocks of no bytes have their addresses
  kSpanWaits,  // hardened build: head of a span that is freed, whose addresses are not to be used again yet
};

// What a free run's addresses hold.
enum class FreeState : uint8_t {
  kClean,     // zeros, and no memory
  kDirty,     // perhaps memory, and what was written there last
  kUnmapped,  // nothing: they went back with the memory
};

// What each record begins with. (A struct of its own below Granule: only what has a base itself lets what is derived
// from it use the rest of its 128 bytes.)
struct GranuleFields {
  // For free(), which tests offsets by it: 0 for whatever is no slab of one granule with blocks (core/slab_record.h).
  // Of a slab, written by whoever may change it (core/slab_record.h), atomically; read by any thread.
  uint64_t limit;
  uint32_t length;  // of the run, in its head and its last granule: granules. Constant while it is in use, but for
                    // spans, which are resized under the lock
  // Read by any thread that frees or looks something up. Changed under the lock, but for a span of the hardened build,
  // by whoever frees it (harden/guarded_span.cpp).
  Kind kind;
  uint8_t back;        // of a slab's tail: how many granules after the head; constant while it is one
  FreeState state;     // of a free run, in its head and its last granule; under the lock
  uint8_t size_class;  // of a slab; changed by its owner while it has no blocks (core/slab.h: remake_slab)
  uint8_t arena;       // its number, in the head of any run; constant
  // Of a slab or span: its first sample (profile/tables.h), as an index; 0: none. Under profile::lock; read by whoever
  // has the run.
  uint32_t samples;
};
struct alignas(128) Granule : GranuleFields {};

// A free run. Under the lock.
struct FreeRun : Granule {
  FreeRun* newer;  // dirty runs of all arenas, by age (pages/free_runs.h)
  FreeRun* older;
  uint64_t freed_ms;  // since when it has been free
  FreeRun* next;      // runs of like length and state (pages/run_bins.h)
  FreeRun* previous;
};

// A span.
struct Span : Granule {
  size_t bytes;        // usable size, a multiple of the page size; changed under the lock
  bool tail_unmapped;  // the addresses behind its usable size have been given back; under the lock
  // Hardened build:
  bool dirty;               // of one that waits to be used again: it may hold memory
  os::GuardKind guards[2];  // before it and behind
  uint32_t before;          // so many granules before it are nobody's to use, and then one behind it too; constant
  size_t asked;             // what the program asked for; of blocks of no bytes: how many are in use, atomic
  Span* next;               // in a list of spans that wait
};

static_assert(sizeof(GranuleFields) == 24 && sizeof(Granule) == 128 && sizeof(FreeRun) == 128 && sizeof(Span) == 128);

// The record of a run's head as that of a span; nullptr where it is none.
inline Span* as_span(Granule* head) { return head->kind == Kind::kSpan ? static_cast<Span*>(head) : nullptr; }

// Whether a run is free of which this is the head or the last granule. One beside it may be a span that another thread
// frees at this moment, without the lock (harden/guarded_span.h): it isn't free before and after.
inline bool is_free(const Granule* end) {
  return std::atomic_ref<Kind>(const_cast<Kind&>(end->kind)).load(std::memory_order_relaxed) == Kind::kFree;
}
inline bool is_free(const Granule* end, FreeState state) { return is_free(end) && end->state == state; }

// Says of a run what it is at both ends; a free one's state stays to be said.
inline void set_ends(Granule* head, uint32_t length, Kind kind) {
  Granule* const last = head + length - 1;
  head->kind = last->kind = kind;
  head->length = last->length = length;
}

}  // namespace annex
