// A process's arenas, as they are at a moment: which run an address lies in, and a walk over all runs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "process/runs.h"
#include "process/target.h"

namespace annex::inspect {

struct ArenaView {
  uint32_t number;
  uint64_t start;     // of the first granule
  uint64_t records;   // the address of the first record
  uint64_t frontier;  // granules
};
std::vector<ArenaView> read_arenas(const Target& target);

// Calls visit(run) for each run; how many granules were unclear (runs.h).
size_t walk_arenas(const Target& target, const std::function<void(const SeenRun&)>& visit);

struct RunAt {
  const ArenaView* arena;
  uint64_t start;
  size_t granule;
  Granule head;
};
// The slab or span in which an address lies.
std::optional<RunAt> find_run(const Memory& memory, const std::vector<ArenaView>& arenas, uint64_t address);

}  // namespace annex::inspect
