// A walk over the records of another process's arena, as they were copied while the process ran: anything may stand in
// them, and nothing is believed that is not borne out by what stands around it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "core/slab_record.h"
#include "pages/granule.h"

namespace annex::inspect {

// A run, by its head's record: a slab, a span or a free run; or one that is none of these at the moment.
struct SeenRun {
  size_t granule;  // the number of its first one
  uint32_t length;
  Kind kind;
  Granule head;

  Slab slab() const;  // where it is one
  Span span() const;
};

// Copies the records from `first` on. False where they can't be read.
using CopyRecords = std::function<bool(size_t first, std::span<Granule> to)>;

// Calls visit for each run before the frontier. How many granules are no part of a run, as their records were being
// changed; where no more could be copied, all from there on.
size_t walk_runs(const CopyRecords& copy, size_t frontier, const std::function<void(const SeenRun&)>& visit);

}  // namespace annex::inspect
