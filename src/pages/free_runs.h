// The free runs of all arenas: by state and length, and the dirty ones by age.
//
// A free run is dirty, clean or unmapped. Free neighbours of one state are joined, those of different states are not,
// so that each byte's state stays known. It knows no lock and no clock: which run is taken, and when what is dirty goes
// back, is the page heap's to say.
//
// A run that has been taken is in nobody's hands until the caller says what it is: both its ends are kTaken.
//
// Synchronization: the page heap's lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pages/arena.h"
#include "pages/books.h"
#include "pages/granule.h"
#include "pages/run_bins.h"

namespace annex {

class FreeRuns {
 public:
  // Before anything else: keeps count there of the bytes that are dirty. (Not in a constructor: all zeros, the page
  // heap takes no room in the library's file.)
  void count_dirty_in(Gauge* dirty) { dirty_ = dirty; }

  // A run of at least so many granules, close to the shortest; one of the longest. nullptr where there is none.
  FreeRun* find(FreeState state, uint32_t granules) const { return bins(state).find(granules); }
  FreeRun* longest(FreeState state) const { return bins(state).longest(); }
  // Dirty runs in order of age: `newer` and `older` lead from one to the next.
  FreeRun* oldest() const { return oldest_; }
  FreeRun* newest() const { return newest_; }
  // The free run of that state which ends before a granule of the arena (or its frontier), or begins with one; nullptr
  // where there is none.
  static FreeRun* ending_at(const Arena& arena, Granule* end, FreeState state);
  static FreeRun* beginning_at(const Arena& arena, Granule* begin, FreeState state);

  // Takes so many granules of a free run, from an offset on; what is before and behind stays free, and as old.
  Granule* take(FreeRun* run, uint32_t offset, uint32_t granules);
  Granule* take(FreeRun* run) { return take(run, 0, run->length); }
  // A dirty run with as much of its clean neighbours as makes `granules`: whether there is enough, and if so, the run
  // taken.
  static bool can_join(FreeRun* dirty, uint32_t granules);
  Granule* take_joined(FreeRun* dirty, uint32_t granules);

  // What was taken becomes free, joined with its neighbours; the joined run. `now_ms`: of a dirty one.
  FreeRun* put(Granule* head, uint32_t granules, FreeState state, uint64_t now_ms = 0);
  // The same of what was taken too much: all but so many granules from the offset on, which the caller keeps.
  Granule* put_rest(Granule* head, uint32_t taken, uint32_t offset, uint32_t granules, FreeState state,
                    uint64_t now_ms = 0);

 private:
  RunBins& bins(FreeState state) { return bins_[static_cast<uint8_t>(state)]; }
  const RunBins& bins(FreeState state) const { return bins_[static_cast<uint8_t>(state)]; }
  FreeRun* list(Granule* head, uint32_t granules, FreeState state);
  void insert_by_age(FreeRun* run, FreeRun* older, uint64_t freed_ms);
  void remove_by_age(FreeRun* run);

  RunBins bins_[3];
  FreeRun* oldest_ = nullptr;
  FreeRun* newest_ = nullptr;
  Gauge* dirty_ = nullptr;
};

}  // namespace annex
