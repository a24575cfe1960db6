// The memory side's statistics as JSON: each unit's own visitor names them.
#include <nlohmann/json.hpp>

#include "machine/memory_system.h"

namespace annex::sim {

namespace {

using nlohmann::json;

constexpr std::array<const char*, kOrigins> kOriginNames = {"program", "allocator"};
constexpr std::array<const char*, kAccesses> kAccessNames = {"load", "store", "fetch"};
constexpr std::array<const char*, kFaults> kFaultNames = {"none", "anonymous", "file", "huge"};

json value_of(uint64_t value) { return value; }

json value_of(const PerOrigin& values) {
  json object;
  for (size_t i = 0; i < kOrigins; ++i) object[kOriginNames[i]] = values[i];
  return object;
}

template <size_t n>
json named(const std::array<uint64_t, n>& values, const std::array<const char*, n>& names) {
  json object;
  for (size_t i = 0; i < n; ++i) object[names[i]] = values[i];
  return object;
}

json value_of(const PerAccess& values) {
  json object;
  for (size_t i = 0; i < kOrigins; ++i) object[kOriginNames[i]] = named(values[i], kAccessNames);
  return object;
}

json value_of(const std::array<std::array<uint64_t, kFaults>, kOrigins>& values) {
  json object;
  for (size_t i = 0; i < kOrigins; ++i) {
    object[kOriginNames[i]] = named(values[i], kFaultNames);
    object[kOriginNames[i]].erase("none");
  }
  return object;
}

template <class Statistics>
json group(const Statistics& statistics) {
  json object;
  Statistics::each(statistics,
                   [&](const char* name, const auto& value, const char*) { object[name] = value_of(value); });
  return object;
}

uint64_t sum(const PerAccess& values) {
  uint64_t total = 0;
  for (const auto& of_origin : values) {
    for (const uint64_t value : of_origin) total += value;
  }
  return total;
}

json cache(const CacheStatistics& statistics) {
  json object = group(statistics);
  object["hits"] = sum(statistics.accesses) - sum(statistics.misses);
  return object;
}

}  // namespace

void MemorySystem::to_json(json& object, Cycles at) const {
  object["cores"] = json::array();
  for (const Side& side : sides_) {
    json core;
    core["l1i"] = cache(side.l1i.statistics);
    core["l1d"] = cache(side.l1d.statistics);
    core["l2"] = cache(side.l2.statistics);
    // Each demand access to an L1 is one to its TLB; each miss there, one to the second TLB.
    core["itlb"] = group(side.itlb.statistics);
    core["itlb"]["accesses"] = sum(side.l1i.statistics.accesses);
    core["dtlb"] = group(side.dtlb.statistics);
    core["dtlb"]["accesses"] = sum(side.l1d.statistics.accesses);
    core["stlb"] = group(side.stlb.statistics);
    core["coherence"] = group(side.coherence);
    core["l2_misses"] = group(side.share_misses);
    core["l2_miss_cycles"] = group(side.share_cycles);
    object["cores"].push_back(std::move(core));
  }
  object["llc"] = cache(llc_.statistics);
  object["dram"] = group(dram_.statistics);
  object["pages"] = group(pages_.statistics);
  object["pages"]["resident"] = pages_.resident_bytes();
  object["pages"]["average_resident"] = pages_.average_resident(at);
  object["pages"]["mapped"] = pages_.mapped_bytes();
}

}  // namespace annex::sim
