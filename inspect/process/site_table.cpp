// Tables of call sites: see site_table.h.
#include "process/site_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "process/units.h"

namespace annex::inspect {

namespace {

// "redis-server+0x4f3a1": the place in the file, of the call and not of where it returns to.
std::string frame_name(const ProfileCopy& profile, const FrameCopy& frame) {
  const auto module = std::find_if(profile.modules.begin(), profile.modules.end(),
                                   [&](const ModuleCopy& one) { return one.number == frame.module; });
  const uint64_t call = frame.return_address - 1;
  if (module == profile.modules.end() || call < module->start) return fmt::format("0x{:x}", call);
  const std::string file = module->path.substr(module->path.rfind('/') + 1);
  return fmt::format("{}+0x{:x}", file, call - module->start + module->offset);
}

// The innermost frames, which say most.
std::string site_name(const ProfileCopy& profile, const SiteCopy& site) {
  constexpr size_t kShown = 4;
  std::string name;
  for (size_t i = 0; i < std::min(site.frames.size(), kShown); ++i) {
    if (i > 0) name += " < ";
    name += frame_name(profile, site.frames[i]);
  }
  return name.empty() ? "(unknown)" : name;
}

double find(const LiveBySite& sites, uint32_t number) {
  const auto found = sites.find(number);
  return found == sites.end() ? 0 : found->second;
}

uint64_t rounded(double bytes) { return static_cast<uint64_t>(std::llround(std::max(bytes, 0.0))); }

}  // namespace

LiveBySite live_by_site(const ProfileCopy& profile) {
  LiveBySite sites;
  for (const LiveCopy& live : profile.live) sites[live.site] += live.weight * static_cast<double>(live.asked);
  return sites;
}

Table site_table(const ProfileCopy& profile, const LiveBySite& live, const LiveBySite& before, const Change& change) {
  static constexpr char kRow[] = "{:>12} {:>15} {:>12}  {}";
  Table table = {fmt::format(kRow, "live", "live grows", "allocated", "site"), {}};
  for (const SiteCopy& site : profile.sites) {
    const uint64_t now = rounded(find(live, site.number));
    const uint64_t then = rounded(find(before, site.number));
    if (now == 0 && then == 0) continue;
    const double growth = change.rate(then, now);
    const std::string name = site_name(profile, site);
    table.rows.push_back({name,
                          fmt::format(kRow, in_units(now), change.text(growth), in_units(rounded(site.bytes)), name),
                          now, growth});
  }
  return sorted(std::move(table));
}

}  // namespace annex::inspect
