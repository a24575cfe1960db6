// Cores' clocks that tests set by hand.
#pragma once

#include <vector>

#include "guest/scheduler.h"

namespace annex::sim {

struct FakeClock final : Clock {
  FakeClock(unsigned cores, Cycles switch_cost) : at(cores), cost(switch_cost) {}

  std::vector<Cycles> at;  // by core
  Cycles cost;             // of a switch to another thread

  Cycles now(unsigned core) const override { return at[core]; }
  void idle_until(unsigned core, Cycles until) override { at[core] = until; }
  void switch_thread(unsigned core) override { at[core] += cost; }
};

}  // namespace annex::sim
