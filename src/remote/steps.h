// The atomics and the lock of which message passing between heaps is made. Every access that two threads may race for
// goes through these names and no other, so that a test can put another file in this one's place, whose names tell it
// of each step before it is done, and try the steps of several threads in every order, on slabs of its own making
// (tests/unit/remote/).
#pragma once

#include <atomic>

#include "core/slab_record.h"
#include "os/lock.h"
#include "pages/arena.h"

namespace annex::remote {

template <class T>
using Atomic = std::atomic<T>;
template <class T>
using AtomicRef = std::atomic_ref<T>;
using Lock = os::Lock;
using Guard = os::Guard;

// How many blocks a slab has.
inline uint32_t capacity_of(const Slab* slab) { return slab_capacity(slab->size_class); }
inline char* start_of_slab(const Slab* slab) { return start_of(slab); }
// The slab in which an address lies; nullptr where it lies in none.
inline Slab* slab_of(const void* address) {
  Granule* granule = granule_of(address);
  if (granule == nullptr) return nullptr;
  return as_slab(granule->kind == Kind::kSlabTail ? granule - granule->back : granule);
}

}  // namespace annex::remote
