// How cores reach the last level: how far its slices are, and how many requests a slice takes.
//
// Models: a last level in as many slices as there are main cores, one beside each; which one a line is in is as good as
// random. Cores with their slices stand in a ring or a mesh, and a message takes `hop` cycles from one to the next, by
// the shortest way (in a mesh along its rows, then its columns). A slice takes a request up every `slice_cycles`; those
// that find it busy wait. With `layout = "none"` all is as far as llc.latency and coherence.transfer say; with
// `slice_cycles = 0` a slice takes any number at a time. Parameters: InterconnectParameters (layout, hop,
// slice_cycles). Simplifications: messages don't wait for each other on their way; memory is as far from all slices;
// write-backs and what the directory is told take no slice's time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "machine/busy_period.h"
#include "machine/parameters.h"
#include "machine/types.h"

namespace annex::sim {

class Interconnect {
 public:
  explicit Interconnect(const Machine& machine)
      : layout_(machine.interconnect.layout == "ring"   ? Layout::kRing
                : machine.interconnect.layout == "mesh" ? Layout::kMesh
                                                        : Layout::kNone),
        hop_(machine.interconnect.hop),
        slice_cycles_(machine.interconnect.slice_cycles),
        places_(machine.all_cores()),
        columns_(columns_of(places_)),
        slices_(machine.cores) {}

  // Whether any of this is modelled.
  bool active() const { return layout_ != Layout::kNone || slice_cycles_ != 0; }

  // The slice of a line, beside the core of that number. Processors' own functions are not published, but spread lines
  // evenly.
  unsigned slice_of(Address line) const {
    return active() ? static_cast<unsigned>((line * 0x9E3779B97F4A7C15u >> 32) % slices_.size()) : 0;
  }

  // From one core, or slice, to another.
  Cycles way(unsigned from, unsigned to) const {
    switch (layout_) {
      case Layout::kNone:
        return 0;
      case Layout::kRing: {
        const unsigned between = from < to ? to - from : from - to;
        return hop_ * std::min(between, places_ - between);
      }
      default:
        return hop_ * (apart(from % columns_, to % columns_) + apart(from / columns_, to / columns_));
    }
  }

  // When a slice takes up a request that has come to it at `at`.
  Cycles take_up(unsigned slice, Cycles at) {
    if (slice_cycles_ == 0) return at;
    const Cycles start = slices_[slice].start(at);
    slices_[slice].occupy(at, slice_cycles_);
    waited_ += start - at;
    return start;
  }

  // Cycles that requests waited for slices.
  uint64_t waited() const { return waited_; }

  void clear() {
    std::fill(slices_.begin(), slices_.end(), BusyPeriod{});
    reset_statistics();
  }
  void reset_statistics() { waited_ = 0; }

 private:
  enum class Layout : uint8_t { kNone, kRing, kMesh };

  static unsigned apart(unsigned one, unsigned other) { return one < other ? other - one : one - other; }
  // As square as can be.
  static unsigned columns_of(unsigned places) {
    unsigned columns = 1;
    while (columns * columns < places) ++columns;
    return columns;
  }

  Layout layout_;
  Cycles hop_;
  Cycles slice_cycles_;
  unsigned places_;
  unsigned columns_;
  std::vector<BusyPeriod> slices_;
  uint64_t waited_ = 0;
};

}  // namespace annex::sim
