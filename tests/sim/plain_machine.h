// A machine for tests: as the defaults, without what most of them don't look at.
#pragma once

#include "machine/parameters.h"

namespace annex::sim {

inline Machine plain_machine() {
  Machine machine;
  machine.predictor.kind = "perfect";
  machine.pages.fault_us = 0;
  machine.pages.file_fault_us = 0;
  machine.pages.clearing = "none";
  machine.pages.walk = 0;
  machine.stlb.latency = 0;
  return machine;
}

}  // namespace annex::sim
