// Where another process finds this one's heap (inspect/process; docs/live-view.md). The library exports one constant of
// these, annex_inspection: what is asked for lies at the addresses that it says, as the headers have it that the reader
// shares with the library. What differs by flavour, or is nobody else's to see, is here as a number.
//
// The reader finds it by its magic text in the process's memory, so it needs neither symbols nor files: the library's
// may have been deleted or replaced, lie in another mount namespace, or be linked into the program.
//
// Constant: a process into which nobody looks pays with these bytes alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/slab_record.h"
#include "os/control.h"
#include "pages/books.h"
#include "pages/granule.h"
#include "profile/tables.h"

namespace annex::observe {

// A list of structs, linked, the newest first. Offsets are within one of them.
struct ListLayout {
  const void* first;  // the address of the pointer to the first one; nullptr: the flavour has no such list
  uint32_t next;
  uint32_t owner;       // what its slabs call their owner
  uint32_t holder;      // where its thread finds it: nullptr where none has it
  uint32_t thread;      // the kernel's number of that thread (long); 0: not known
  uint32_t has_pooled;  // 1: `pooled` is there, and so is `batches`
  uint32_t pooled;      // a bool: no thread has it, since its thread has ended
  uint32_t refills;     // counts
  uint32_t batches;
};

// An array of at most kMostArenas structs, and what is read of each. Offsets, again.
inline constexpr uint32_t kMostArenas = 64;
struct ArenasLayout {
  const void* first;
  const uint32_t* count;
  uint32_t bytes;  // of each
  uint32_t start;
  uint32_t metadata;
  uint32_t frontier;
};

// How it can be told whether a small block is in use.
enum class Marks : uint32_t {
  kKey,     // its second word is not key ^ address; the slab's key (core/mark.h)
  kMapKey,  // the same, and its bit in the slab's bitmap is 0; the key is in the class map (support/side_tables.h)
  kState,   // its state is not 0 (harden/live_blocks.h)
};

// Marks::kMapKey: arrays of structs, one for each arena.
struct ClassMapLayout {
  const void* first;
  uint32_t bytes;
  uint32_t map;  // the offset of the map's address; nullptr there: the process has no map, and keys as kKey has them
  uint64_t other_bits;  // in a word of the map, of those that are the key: not part of it
  uint32_t key_shift;
};

// Marks::kState: the addresses of arrays of addresses, one for each arena. A block's state is at
// part + (address >> shift).
struct StatesLayout {
  const void* tiny;
  const void* larger;
  uint32_t tiny_shift;
  uint32_t larger_shift;
  uint32_t largest_tiny;  // block size
};

struct Inspection {
  char magic[16];          // kMagic
  uint64_t layout;         // layout_number() of the library; another one than the reader's: another version
  const Inspection* self;  // its own address: else it is a copy, or not loaded yet
  char version[32];        // as annex_version() has it

  ArenasLayout arenas;
  ListLayout heaps;    // of all flavours: front/thread_heap.h
  ListLayout clients;  // offload flavour: front/thread_client.h
  Marks marks;
  ClassMapLayout class_map;
  StatesLayout states;
  const Books* books;
  const profile::Tables* profile;

  // For the reader to write.
  os::Control* control;
  std::atomic<bool>* slow_path_called;
};

inline constexpr char kMagic[] = "annex-inspection";
static_assert(sizeof kMagic == sizeof(Inspection::magic) + 1);

namespace layout {

constexpr uint64_t mix(uint64_t number, uint64_t more) { return (number ^ more) * 0x100000001b3; }  // FNV-1a's step

template <class... Numbers>
constexpr uint64_t mix_all(Numbers... numbers) {
  uint64_t all = 0xcbf29ce484222325;
  ((all = mix(all, static_cast<uint64_t>(numbers))), ...);
  return all;
}

}  // namespace layout

// A number made of all on which the library and a reader must agree. (offsetof of structs with bases: both compilers
// that build this have it.)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
constexpr uint64_t layout_number() {
  using profile::Label, profile::Module, profile::Sample, profile::Site, profile::Tables;
  return layout::mix_all(
      1, sizeof(Inspection), offsetof(Inspection, marks), offsetof(Inspection, books), kGranuleShift, kClasses,
      kMaxSmall, kStepsPerDoubling,
      // pages/granule.h, core/slab_record.h
      sizeof(Granule), offsetof(Granule, length), offsetof(Granule, kind), offsetof(Granule, back),
      offsetof(Granule, state), offsetof(Granule, size_class), offsetof(Granule, arena), Kind::kSlab, Kind::kSlabTail,
      Kind::kSpan, Kind::kFree, Kind::kTaken, Kind::kNoBytes, Kind::kSpanWaits, FreeState::kClean, FreeState::kDirty,
      FreeState::kUnmapped, offsetof(Span, bytes), offsetof(Span, asked), offsetof(Slab, key), offsetof(Slab, owner),
      offsetof(Slab, countdown), offsetof(Slab, used_after), offsetof(Slab, carved), offsetof(Slab, in_holes),
      offsetof(Slab, holes), offsetof(Slab, support_heap), offsetof(Slab, bitmap),
      // pages/books.h
      sizeof(Books), offsetof(Books, committed), offsetof(Books, metadata), offsetof(Books, dirty),
      offsetof(Books, peak), offsetof(Books, purged_total), offsetof(Books, huge), offsetof(Books, beside),
      // profile/tables.h
      profile::kMaxFrames, profile::kLifetimes, profile::kSamplesInChunk, profile::kMostChunks, sizeof(Module),
      offsetof(Module, build_id_bytes), offsetof(Module, start), offsetof(Module, offset), offsetof(Module, build_id),
      offsetof(Module, path), sizeof(Label), offsetof(Label, set), offsetof(Label, key), sizeof(Site),
      offsetof(Site, number), offsetof(Site, samples), offsetof(Site, freed), offsetof(Site, depth),
      offsetof(Site, frames), sizeof(Sample), offsetof(Sample, head), offsetof(Sample, asked),
      offsetof(Sample, born_ms), offsetof(Sample, thread), sizeof(Tables), offsetof(Tables, dropped),
      offsetof(Tables, modules), offsetof(Tables, labels), offsetof(Tables, sites), offsetof(Tables, places),
      offsetof(Tables, chunks),
      // os/control.h
      sizeof(os::Control), offsetof(os::Control, rate), offsetof(os::Control, given_back), os::Control::kTrim,
      os::Control::kStartProfile, os::Control::kStopProfile);
}
#pragma GCC diagnostic pop

}  // namespace annex::observe

extern "C" [[gnu::visibility("default")]] constinit const annex::observe::Inspection annex_inspection;
