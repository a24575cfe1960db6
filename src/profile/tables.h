// What a profile knows: the tables that samples are written down in. Plain data at fixed places, so that `annex top`
// and `annex profile --attach` can read them in another process (inspect/process).
//
// Records are never moved or given back; lists grow at their front. Synchronization: profile::lock, which stands after
// heaps' locks and before the page heap's (os/fork.h). What is read without it, by the raw file's writer and other
// processes, is written so that a reader sees whole records: a list's head is stored last, with release. Counts are a
// moment's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/lock.h"
#include "pages/granule.h"

namespace annex::profile {

inline constexpr size_t kMaxFrames = 64;
inline constexpr size_t kLifetimes = 8;  // below 1 ms, 10 ms, ..., 1000 s; more
inline constexpr size_t kMaxBuildId = 20;

// An executable range of addresses of a program or library.
struct Module {
  Module* next;
  uint32_t number;  // from 1 on
  uint32_t build_id_bytes;
  uintptr_t start;
  uintptr_t end;
  uint64_t offset;  // of the start, in the file
  uint8_t build_id[kMaxBuildId];
  char path[];  // "": the program's
};

inline bool is_program(const Module* module) { return module->path[0] == '\0'; }

// One label of a set; each set's follow one another.
struct Label {
  Label* next;
  uint32_t set;  // its number, from 1 on
  const char* key;
  const char* value;
};

// A call stack under a label set. Counts are of all samples so far.
struct Site {
  Site* next;
  Site* bucket;  // the next one with a like hash
  uint64_t hash;
  uint32_t number;  // from 1 on
  uint32_t labels;  // the set's number; 0: no labels
  uint64_t samples;
  double objects;  // that they speak of, and their bytes as the program asked for them
  double bytes;
  double freed;                  // of objects
  double lifetimes[kLifetimes];  // of freed
  uint32_t depth;
  uintptr_t frames[];  // return addresses, the innermost first; behind them the number of each one's module

  // 0: none known.
  const uint16_t* modules() const { return reinterpret_cast<const uint16_t*>(frames + depth); }
};

// A sampled block in use.
struct Sample {
  uintptr_t block;  // 0: the place is empty
  Granule* head;    // of its slab or span
  Site* site;
  uint64_t asked;    // by the program
  uint64_t size;     // the block's
  double weight;     // how many blocks it speaks of
  uint64_t born_ms;  // coarse monotonic clock
  uint32_t thread;   // the kernel's number of it
  uint32_t next;     // the next sample of the same slab, or the next empty place: its index; 0: none
};

inline constexpr uint32_t kSamplesInChunk = 512;
inline constexpr uint32_t kMostChunks = 4096;

struct Tables {
  uint64_t rate;           // mean bytes between two samples; 0: no profile is on
  uint64_t last_rate;      // the same of the last one that was
  uint64_t began_unix_ms;  // 0: there never was one
  uint64_t dropped;        // samples for which there was no memory, or no place left
  Module* modules;
  Label* labels;
  Site* sites;
  // Samples by index: chunks[index / kSamplesInChunk][index % kSamplesInChunk]. Index 0 is none's.
  uint32_t places;  // so many have ever been used, index 0 among them
  uint32_t empty;   // the first of those that are empty again
  Sample* chunks[kMostChunks];
};
extern constinit Tables tables;
extern constinit os::Lock lock;

inline Sample& sample_at(uint32_t index) { return tables.chunks[index / kSamplesInChunk][index % kSamplesInChunk]; }

}  // namespace annex::profile
