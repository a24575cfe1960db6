// A profile as text tables: see report.h.
#include "profile/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "profile/text.h"

namespace annex::inspect {
namespace {

std::vector<const Site*> sites_by(const Profile& profile, Value by, size_t most) {
  std::vector<const Site*> sites;
  for (const Site& site : profile.sites) {
    if (site.values[by] > 0) sites.push_back(&site);
  }
  std::stable_sort(sites.begin(), sites.end(),
                   [by](const Site* a, const Site* b) { return a->values[by] > b->values[by]; });
  sites.resize(std::min(sites.size(), most));
  return sites;
}

double part(double some, double all) { return all > 0 ? some / all : 0; }

std::string stack_of(const Profile& profile, const Site& site) {
  return short_stack(profile, site) + labels_text(site.labels);
}

}  // namespace

std::string summary(const Profile& profile) {
  const RawProfile& raw = profile.raw;
  uint64_t samples = 0;
  for (const Site& site : profile.sites) samples += site.samples;
  const HeapReport& heap = profile.heap;
  const uint64_t dropped = raw.stat("dropped");
  const std::string missing =
      dropped == 0 ? ""
                   : fmt::format("{} samples are missing, as there was no room: all figures are too low\n", dropped);
  return missing +
         fmt::format(
             "{}[{}] on Annex {}, profiled for {:.1f} s: {} samples, one each {}\n"
             "live {} in {} blocks; allocated {} in {} blocks\n"
             "heap {} resident, {} of it not asked for by a live block (fragmentation); process {}, at most {}\n",
             profile.program, raw.pid, raw.version,
             static_cast<double>(raw.written_ms - std::min(raw.began_ms, raw.written_ms)) / 1000,
             count_text(static_cast<double>(samples)), bytes_text(static_cast<double>(raw.rate)),
             bytes_text(profile.sums[kLiveBytes]), count_text(profile.sums[kLiveBlocks]),
             bytes_text(profile.sums[kTotalBytes]), count_text(profile.sums[kTotalBlocks]), bytes_text(heap.resident),
             percent_text(heap.fragmentation()), bytes_text(static_cast<double>(raw.stat("resident"))),
             bytes_text(static_cast<double>(raw.stat("peak_resident"))));
}

std::string top_sites(const Profile& profile, Value by, size_t most) {
  const auto sites = sites_by(profile, by, most);
  if (sites.empty()) return "";
  if (by == kLiveBytes || by == kLiveBlocks) {
    Columns table({"live bytes", "of all", "blocks", "where"});
    for (const Site* site : sites) {
      table.add({bytes_text(site->values[kLiveBytes]), percent_text(part(site->values[by], profile.sums[by])),
                 count_text(site->values[kLiveBlocks]), stack_of(profile, *site)});
    }
    return table.text();
  }
  Columns table({kValues[by].title, "of all", "live bytes", "where"});
  for (const Site* site : sites) {
    table.add({value_text(by, site->values[by]), percent_text(part(site->values[by], profile.sums[by])),
               bytes_text(site->values[kLiveBytes]), stack_of(profile, *site)});
  }
  return table.text();
}

std::string class_table(const Profile& profile) {
  Columns table({"block", "slabs", "slab bytes", "made", "in use", "asked for", "rounding", "fragmentation"});
  for (const ClassReport& one : profile.classes) {
    table.add({count_text(static_cast<double>(one.counts.size)), count_text(static_cast<double>(one.counts.slabs)),
               bytes_text(static_cast<double>(one.counts.bytes)), count_text(static_cast<double>(one.counts.made)),
               count_text(static_cast<double>(one.counts.used)), bytes_text(one.asked), bytes_text(one.rounding()),
               percent_text(one.fragmentation())});
  }
  return profile.classes.empty() ? "" : table.text();
}

std::string pin_table(const Profile& profile, size_t most) {
  const auto sites = sites_by(profile, kPinnedBytes, most);
  if (sites.empty()) return "";
  Columns table({"pins", "goes back without it", "live bytes", "where"});
  for (const Site* site : sites) {
    table.add({bytes_text(site->values[kPinnedBytes]), bytes_text(site->freed_without),
               bytes_text(site->values[kLiveBytes]), stack_of(profile, *site)});
  }
  return table.text();
}

}  // namespace annex::inspect
