// The memory side's statistics as JSON: each unit's own visitor names them.
#include <nlohmann/json.hpp>

#include "machine/memory_system.h"

namespace annex::sim {

namespace {

using nlohmann::json;

constexpr std::array<const char*, 2> kOriginNames = {"program", "allocator"};
constexpr std::array<const char*, kRequesters> kRequesterNames = {"program", "allocator", "kernel"};
constexpr std::array<const char*, kAccesses> kAccessNames = {"load", "store", "fetch"};
constexpr std::array<const char*, kFaults> kFaultNames = {"none", "anonymous", "file", "huge"};

json value_of(uint64_t value) { return value; }

template <size_t n>
json named(const std::array<uint64_t, n>& values, const std::array<const char*, n>& names) {
  json object;
  for (size_t i = 0; i < n; ++i) object[names[i]] = values[i];
  return object;
}

json value_of(const std::array<uint64_t, 2>& values) { return named(values, kOriginNames); }
json value_of(const PerRequester& values) { return named(values, kRequesterNames); }

json value_of(const PerAccess& values) {
  json object;
  for (size_t i = 0; i < kRequesters; ++i) object[kRequesterNames[i]] = named(values[i], kAccessNames);
  return object;
}

json value_of(const std::array<std::array<uint64_t, kFaults>, 2>& values) {
  json object;
  for (size_t i = 0; i < kOriginNames.size(); ++i) {
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

json cache(const Cache& from, const Prefetcher& prefetcher) {
  json object = group(from.statistics);
  object["hits"] = sum(from.statistics.accesses) - sum(from.statistics.misses);
  if (prefetcher.active()) object["prefetcher"] = group(prefetcher.statistics);
  return object;
}

}  // namespace

void MemorySystem::to_json(json& object, Cycles at) const {
  object["cores"] = json::array();
  for (const auto& side : sides_) {
    const PrivateCaches& caches = side->caches;
    json core;
    core["l1i"] = cache(caches.l1i, caches.l1i_prefetcher);
    core["l1d"] = cache(caches.l1d, caches.l1d_prefetcher);
    if (caches.l2) core["l2"] = cache(*caches.l2, caches.l2_prefetcher);
    // Each demand access to an L1 is one to its TLB; each miss there, one to the second TLB.
    core["itlb"] = group(side->itlb.statistics);
    core["itlb"]["accesses"] = sum(caches.l1i.statistics.accesses);
    core["dtlb"] = group(side->dtlb.statistics);
    core["dtlb"]["accesses"] = sum(caches.l1d.statistics.accesses);
    core["stlb"] = group(side->stlb.statistics);
    if (side->walker.reads()) core["walker"] = group(side->walker.statistics);
    core["coherence"] = group(coherence(caches.number));
    core["l2_misses"] = group(attribution_.misses(caches.number));
    core["l2_miss_cycles"] = group(attribution_.miss_times(caches.number));
    object["cores"].push_back(std::move(core));
  }
  object["llc"] = cache(last_level_.cache(), last_level_.prefetcher());
  if (last_level_.interconnect().active()) object["interconnect"]["waited"] = last_level_.interconnect().waited();
  object["dram"] = group(dram());
  object["pages"] = group(pages_.statistics);
  object["pages"]["resident"] = pages_.resident_bytes();
  object["pages"]["average_resident"] = pages_.average_resident(at);
  object["pages"]["mapped"] = pages_.mapped_bytes();
}

}  // namespace annex::sim
