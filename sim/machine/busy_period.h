// A resource that serves one request after the other, remembered by its latest unbroken busy period [from, until).
//
// Requests come in the order of simulation, which differs from that of simulated time by up to the quantum. One within
// the period goes to its end; one before it goes at once (who is that far behind would have come first), so it is never
// held up by more than one period, all of which began before it.
#pragma once

#include <algorithm>

#include "machine/types.h"

namespace annex::sim {

struct BusyPeriod {
  Cycles from = 0;
  Cycles until = 0;

  // When a request at `at` would start.
  Cycles start(Cycles at) const { return at < from || at >= until ? at : until; }

  // It starts at start(at), and takes `duration`.
  void occupy(Cycles at, Cycles duration) { extend(at, start(at) + duration); }

  // What was asked for at `at` keeps the resource until then. What it takes of the time of a period that began later is
  // added to that one's end: nothing is ever served faster than the resource can.
  void extend(Cycles at, Cycles end) {
    if (at >= until) {
      *this = {at, end};
    } else if (at >= from) {
      until = std::max(until, end);
    } else if (end > from) {
      until += end - from;
      from = at;
    }
  }

  // The same, beside whatever else it does then.
  void cover(Cycles at, Cycles end) {
    if (at > until) {
      *this = {at, end};
    } else if (end >= from) {
      from = std::min(from, at);
      until = std::max(until, end);
    }
  }
};

}  // namespace annex::sim
