// A heap profile with names: what every output is made of.
#pragma once

#include <string>
#include <vector>

#include "profile/module_file.h"
#include "profile/raw.h"
#include "profile/value.h"

namespace annex::inspect {

// One address in one module, shared by all call stacks that pass it.
struct Place {
  Frame frame;
  std::vector<CodeLine> lines;  // the innermost first, at least one
};

struct Site {
  Labels labels;
  std::vector<size_t> places;  // in Profile::places, the innermost first
  Values values{};
  double freed_without = 0;  // bytes that would go back to the system if its blocks were freed
  uint64_t samples = 0;
  double freed = 0;  // objects
  std::array<double, kLifetimes> lifetimes{};
};

// Blocks of one size. What is estimated comes from the samples in use.
struct ClassReport {
  SizeClass counts;
  double live_blocks = 0;  // estimated
  double asked = 0;        // bytes of these that the program asked for; estimated
  double rounding() const { return live_blocks * static_cast<double>(counts.size) - asked; }
  // The part of the slabs' bytes that no live block asked for.
  double fragmentation() const;
};

// Where the memory of the heap is, in bytes.
struct HeapReport {
  double resident;  // of the heap: slabs, spans, dirty and metadata, but no more than of the process
  double live;      // asked for; estimated
  double rounding;  // between that and the sizes of the blocks; estimated
  double free_in_slabs;
  double dirty;
  double metadata;
  double fragmentation() const;  // the part of `resident` that no live block asked for
};

struct Profile {
  RawProfile raw;
  std::string program;
  std::vector<Place> places;
  std::vector<Site> sites;
  std::vector<ClassReport> classes;
  HeapReport heap{};
  Values sums{};
  std::vector<std::string> problems;  // modules without symbols, a line for each

  // The lines of a site, the innermost first.
  std::vector<const CodeLine*> lines_of(const Site& site) const;
};

Profile make_profile(RawProfile raw);

}  // namespace annex::inspect
