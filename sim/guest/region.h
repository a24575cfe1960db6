// The region of interest: where a program says that it has one (include/annex/region.h), a run's results are what its
// statistics gained between begin and end, several such regions added up.
//
// Kept as it was at the end: what is no count (names, a size, a peak, which is the whole run's so far). Means are of
// the region's time. A call or request that is under way at either end is counted where it ends.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>

namespace annex::sim {

class Region {
 public:
  using Json = nlohmann::json;

  // `count`: all statistics so far, as Simulation::describe() gives them.
  explicit Region(std::function<Json()> count);

  void begin();
  void end();
  // So far; with "region": how many there were, and what they leave out. Before the first there is nothing to tell of.
  Json results() const;

  // What was gained between two counts, and two regions as one.
  static Json gained(const Json& later, const Json& earlier);
  static Json together(const Json& first, const Json& second);

 private:
  Json sum() const;

  std::function<Json()> count_;
  Json sum_;     // of regions that have ended
  Json before_;  // what was counted when this one began
  uint64_t regions_ = 0;
  bool inside_ = false;
  uint64_t instructions_before_ = 0;  // the first of them
  uint64_t calls_before_ = 0;
};

}  // namespace annex::sim
