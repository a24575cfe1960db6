// The hardware units that a machine has: what its file says, made.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "hardware/unit.h"
#include "machine/memory_system.h"
#include "machine/parameters.h"

namespace annex::sim {

// In the order of the clusters of main cores that they serve; empty: none.
std::vector<std::unique_ptr<Unit>> make_units(const Machine& machine, std::deque<Core>& cores, MemorySystem& memory);

}  // namespace annex::sim
