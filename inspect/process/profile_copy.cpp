// Copies of profiles: see profile_copy.h.
#include "process/profile_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "message.h"
#include "process/proc.h"
#include "process/samples.h"

namespace annex::inspect {

namespace {

using profile::Label;
using profile::Module;
using profile::Site;
using profile::Tables;

constexpr size_t kLongestPath = 4096;
constexpr size_t kLongestLabel = 4096;
constexpr size_t kMostRecords = size_t{1} << 20;  // of a list

// What `copy(address, record)` makes of each record of a list, the last one first: the list has the newest first.
template <class Record, class Copied, class Copy>
std::vector<Copied> copy_list(const Memory& memory, uint64_t first, Copy copy) {
  std::vector<Copied> all;
  for (uint64_t at = first; at != 0 && all.size() < kMostRecords;) {
    // (A module's path and a site's frames follow it.)
    alignas(Record) char bytes[sizeof(Record)];
    if (!memory.read(at, bytes, sizeof bytes)) break;
    const Record& record = *reinterpret_cast<const Record*>(bytes);
    all.push_back(copy(at, record));
    at = number(record.next);
  }
  std::reverse(all.begin(), all.end());
  return all;
}

ModuleCopy copy_module(const Memory& memory, uint64_t at, const Module& module) {
  ModuleCopy copy = {module.number, module.start, module.end, module.offset, {}, {}};
  for (uint32_t i = 0; i < std::min<uint32_t>(module.build_id_bytes, profile::kMaxBuildId); ++i) {
    copy.build_id += fmt::format("{:02x}", module.build_id[i]);
  }
  copy.path = memory.text(at + offsetof(Module, path), kLongestPath);
  if (copy.path.empty()) copy.path = program_path(memory.process());
  return copy;
}

SiteCopy copy_site(const Memory& memory, uint64_t at, const Site& site) {
  SiteCopy copy = {site.number, site.labels, site.samples, site.objects, site.bytes, site.freed, {}, {}};
  std::copy(std::begin(site.lifetimes), std::end(site.lifetimes), copy.lifetimes);
  const size_t depth = std::min<size_t>(site.depth, profile::kMaxFrames);
  uint64_t addresses[profile::kMaxFrames] = {};
  uint16_t modules[profile::kMaxFrames] = {};
  memory.read(at + offsetof(Site, frames), addresses, depth * sizeof *addresses);
  memory.read(at + offsetof(Site, frames) + site.depth * sizeof *addresses, modules, depth * sizeof *modules);
  for (size_t i = 0; i < depth; ++i) copy.frames.push_back({modules[i], addresses[i]});
  return copy;
}

// The place of such an age among a site's lifetimes.
size_t lifetime(uint64_t age_ms) {
  size_t place = 0;
  for (uint64_t end = 1; place + 1 < profile::kLifetimes && age_ms >= end; end *= 10) ++place;
  return place;
}

}  // namespace

uint64_t profile_rate(const Target& target) {
  return target.memory.get<uint64_t>(number(target.annex.profile) + offsetof(Tables, rate));
}

ProfileCopy copy_profile(const Target& target) {
  const Memory& memory = target.memory;
  // The samples first: the sites and modules that they name are there by then.
  Samples samples = copy_samples(target);
  ProfileCopy copy;
  copy.rate = samples.tables->last_rate;
  copy.dropped = samples.tables->dropped;
  copy.began_unix_ms = samples.tables->began_unix_ms;
  std::unordered_map<uint64_t, size_t> places;  // of sites: how many were newer
  const uint64_t first_site = memory.get<uint64_t>(number(target.annex.profile) + offsetof(Tables, sites));
  copy.sites = copy_list<Site, SiteCopy>(memory, first_site, [&](uint64_t at, const Site& site) {
    places.emplace(at, places.size());
    return copy_site(memory, at, site);
  });
  const uint64_t first_label = memory.get<uint64_t>(number(target.annex.profile) + offsetof(Tables, labels));
  copy.labels = copy_list<Label, LabelCopy>(memory, first_label, [&](uint64_t, const Label& label) {
    return LabelCopy{label.set, memory.text(number(label.key), kLongestLabel),
                     memory.text(number(label.value), kLongestLabel)};
  });
  const uint64_t first_module = memory.get<uint64_t>(number(target.annex.profile) + offsetof(Tables, modules));
  copy.modules = copy_list<Module, ModuleCopy>(
      memory, first_module, [&](uint64_t at, const Module& module) { return copy_module(memory, at, module); });
  for (SampleCopy& sample : samples.all) {
    const auto found = places.find(sample.site);
    if (found == places.end()) continue;  // a sample that was being written
    SiteCopy& site = copy.sites[copy.sites.size() - 1 - found->second];
    if (sample.in_use) {
      sample.block.site = site.number;
      copy.live.push_back(std::move(sample.block));
    } else {
      site.freed += sample.block.weight;
      site.lifetimes[lifetime(sample.block.age_ms)] += sample.block.weight;
    }
  }
  return copy;
}

}  // namespace annex::inspect
