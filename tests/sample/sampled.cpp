// See sampled.h.
#include "sample/sampled.h"

#include <time.h>
#include <unistd.h>

#include <cstdint>

#include "annex/annex.h"
#include "common/opaque.h"

namespace annex_test {

namespace {

struct Search {
  const char* address;
  bool found;
};

int look(const annex_region* region, void* context) {
  auto* search = static_cast<Search*>(context);
  const char* start = static_cast<const char*>(region->start);
  search->found |= search->address >= start && search->address < start + region->bytes;
  return search->found ? 1 : 0;
}

std::uint64_t seconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec);
}

}  // namespace

bool is_sampled(const void* block) {
  // A walk knows no memory tags (AArch64).
  block = reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(block) & (~std::uintptr_t{0} >> 8));
  Search search{static_cast<const char*>(block), false};
  return annex_owns(block) != 0 && annex_heap_walk(look, &search) == 0 && !search.found;
}

char* take_sampled(std::size_t bytes, Side side) {
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t end = (page - bytes) & ~std::size_t{15};
  for (const std::uint64_t start = seconds(); seconds() < start + 60;) {
    char* block = static_cast<char*>(opaque(annex_malloc(bytes)));
    SCENARIO_CHECK(block != nullptr);
    const std::size_t at = reinterpret_cast<std::uintptr_t>(block) % page;
    const bool fits = (side != Side::kStart && at == end) || (side != Side::kEnd && at == 0);
    if (fits && is_sampled(block)) return block;
  }
  scenario_failed(__FILE__, __LINE__, "a block is sampled within a minute");
}

Outcome run_with_samples(const std::string& scenario) {
  Launch launch;
  launch.scenario = scenario;
  launch.environment = {{"ANNEX_SAMPLE", "1000"}, {"ANNEX_BACKTRACE", "1"}};
  return run_scenario(launch);
}

}  // namespace annex_test
