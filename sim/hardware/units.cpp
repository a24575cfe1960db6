// The units of a machine: see units.h.
#include "hardware/units.h"

#include "hardware/fixed_time.h"
#include "hardware/memento.h"
#include "hardware/support_core.h"

namespace annex::sim {

std::vector<std::unique_ptr<Unit>> make_units(const Machine& machine, std::deque<Core>& cores, MemorySystem& memory) {
  std::vector<std::unique_ptr<Unit>> units;
  if (machine.fixed_time.used()) units.push_back(std::make_unique<FixedTime>(machine.fixed_time));
  if (machine.memento.used()) {
    units.push_back(std::make_unique<Memento>(machine.memento, machine.thread_cores(), memory));
  }
  // Clusters as even as can be: those cores of which core * count / mains is i.
  const unsigned mains = machine.thread_cores();
  const unsigned count = machine.support_core.cores;
  for (unsigned i = 0; i < count; ++i) {
    const unsigned first = (i * mains + count - 1) / count;
    const unsigned end = ((i + 1) * mains + count - 1) / count;
    Core& own = cores[machine.first_of(kSupportCore) + i];
    units.push_back(std::make_unique<SupportCore>(machine.support_core, Cluster{first, end - first}, own, memory));
  }
  return units;
}

}  // namespace annex::sim
