// Live blocks, the pages that they keep, and where the heap's memory is: see heap.h.
#include "profile/heap.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace annex::inspect {
namespace {

// Estimated live blocks by their size, of all sites and of each one.
struct Counts {
  std::map<uint64_t, double> all;
  std::map<std::pair<uint64_t, size_t>, double> of_site;

  explicit Counts(const RawProfile& raw) {
    for (const LiveBlock& block : raw.live) {
      if (block.shares.empty()) continue;
      all[block.size] += block.weight;
      of_site[{block.size, block.site}] += block.weight;
    }
  }

  double share_of(const LiveBlock& block) const { return of_site.at({block.size, block.site}) / all.at(block.size); }
};

// Of a block in a slab. Its pages count as far as the block itself is resident.
void add_pages(const RawProfile& raw, const LiveBlock& block, double share, Site* site) {
  const double resident = std::min(1.0, static_cast<double>(block.resident) / std::max<double>(block.size, 1));
  for (const uint64_t blocks : block.shares) {
    const double part = block.weight * resident * static_cast<double>(raw.page) / static_cast<double>(blocks);
    site->values[kPinnedBytes] += part;
    // The page goes back only where all of its other blocks are this site's too.
    site->freed_without += part * std::pow(share, static_cast<double>(blocks - 1));
  }
}

void add_to_sites(Profile* profile) {
  const Counts counts(profile->raw);
  for (const LiveBlock& block : profile->raw.live) {
    Site& site = profile->sites[block.site];
    site.values[kLiveBytes] += static_cast<double>(block.asked) * block.weight;
    site.values[kLiveBlocks] += block.weight;
    if (block.shares.empty()) {
      const double bytes = static_cast<double>(block.resident) * block.weight;
      site.values[kPinnedBytes] += bytes;
      site.freed_without += bytes;
    } else {
      add_pages(profile->raw, block, counts.share_of(block), &site);
    }
  }
}

void add_classes(Profile* profile) {
  std::map<uint64_t, ClassReport> classes;
  for (const SizeClass& one : profile->raw.classes) classes[one.size].counts = one;
  for (const LiveBlock& block : profile->raw.live) {
    const auto found = classes.find(block.size);
    if (block.shares.empty() || found == classes.end()) continue;
    found->second.live_blocks += block.weight;
    found->second.asked += static_cast<double>(block.asked) * block.weight;
  }
  for (const auto& [size, one] : classes) profile->classes.push_back(one);
}

void add_heap(Profile* profile) {
  const RawProfile& raw = profile->raw;
  const auto stat = [&raw](const char* name) { return static_cast<double>(raw.stat(name)); };
  HeapReport& heap = profile->heap;
  for (const LiveBlock& block : raw.live) {
    heap.live += static_cast<double>(block.asked) * block.weight;
    heap.rounding += static_cast<double>(block.size - std::min(block.size, block.asked)) * block.weight;
  }
  const double used_in_slabs = stat("used") - stat("used_spans");
  heap.free_in_slabs = std::max(0.0, stat("slabs") - used_in_slabs);
  heap.dirty = stat("dirty");
  heap.metadata = stat("metadata");
  heap.resident = std::min(stat("slabs") + stat("used_spans") + heap.dirty + heap.metadata, stat("resident"));
}

double part_without(double live, double whole) { return whole > 0 ? std::clamp(1 - live / whole, 0.0, 1.0) : 0; }

}  // namespace

double ClassReport::fragmentation() const { return part_without(asked, static_cast<double>(counts.bytes)); }
double HeapReport::fragmentation() const { return part_without(live, resident); }

void add_live_blocks(Profile* profile) {
  add_to_sites(profile);
  add_classes(profile);
  add_heap(profile);
}

}  // namespace annex::inspect
