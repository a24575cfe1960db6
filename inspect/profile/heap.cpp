// Live blocks, the pages that they keep, and where the heap's memory is: see heap.h.
#include "profile/heap.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>
#include <vector>

namespace annex::inspect {
namespace {

// Who lies beside a block. A sample says how many blocks are in use on a page, not whose they are. The sampled blocks
// of that size that lie nearest, on pages with about as many in use, stand for them: nearest, as a program fills pages
// one after the other; with as many in use, as what is left on a page that was emptied isn't what lies on a full one.
class Neighbours {
 public:
  explicit Neighbours(const RawProfile& raw) {
    for (const LiveBlock& block : raw.live) {
      for (const uint64_t blocks : block.shares) {
        rows_[{block.size, std::bit_width(blocks)}].push_back({block.address, block.site});
      }
    }
    for (auto& [kind, row] : rows_) put_in_order(&row);
  }

  // Whether the other blocks are the call site's own, on a page on which so many are in use.
  bool are_own(const LiveBlock& block, uint64_t blocks) const {
    const Row& row = rows_.at({block.size, std::bit_width(blocks)});
    const auto place = static_cast<size_t>(
        std::lower_bound(row.begin(), row.end(), block.address,
                         [](const Neighbour& one, uint64_t address) { return one.address < address; }) -
        row.begin());
    // As many on either side of it; where the row ends, more on the other.
    const size_t count = std::min<size_t>(blocks, row.size());
    const size_t before = std::min<size_t>((count - 1) / 2, place);
    const size_t first = std::min(place - before, row.size() - count);
    return row[place].own_from <= first && first + count <= row[place].own_to;
  }

 private:
  struct Neighbour {
    uint64_t address;
    size_t site;
    size_t own_from = 0, own_to = 0;  // places in the row, between which all are of the same call site
  };
  using Row = std::vector<Neighbour>;

  // By address. A block that lies on several such pages is there once.
  static void put_in_order(Row* row) {
    std::sort(row->begin(), row->end(), [](const Neighbour& a, const Neighbour& b) { return a.address < b.address; });
    row->erase(std::unique(row->begin(), row->end(),
                           [](const Neighbour& a, const Neighbour& b) { return a.address == b.address; }),
               row->end());
    for (size_t from = 0, to = 0; from < row->size(); from = to) {
      while (to < row->size() && (*row)[to].site == (*row)[from].site) ++to;
      for (size_t i = from; i < to; ++i) {
        (*row)[i].own_from = from;
        (*row)[i].own_to = to;
      }
    }
  }

  std::map<std::pair<uint64_t, int>, Row> rows_;  // by the size of blocks, and the bits of the number on the page
};

// Of a block in a slab. Its pages count as far as the block itself is resident.
void add_pages(const RawProfile& raw, const LiveBlock& block, const Neighbours& neighbours, Site* site) {
  const double resident = std::min(1.0, static_cast<double>(block.resident) / std::max<double>(block.size, 1));
  for (const uint64_t blocks : block.shares) {
    const double part = block.weight * resident * static_cast<double>(raw.page) / static_cast<double>(blocks);
    site->values[kPinnedBytes] += part;
    // The page goes back only where all of its other blocks are this site's too.
    if (neighbours.are_own(block, blocks)) site->freed_without += part;
  }
}

void add_to_sites(Profile* profile) {
  const Neighbours neighbours(profile->raw);
  for (const LiveBlock& block : profile->raw.live) {
    Site& site = profile->sites[block.site];
    site.values[kLiveBytes] += static_cast<double>(block.asked) * block.weight;
    site.values[kLiveBlocks] += block.weight;
    if (block.shares.empty()) {
      const double bytes = static_cast<double>(block.resident) * block.weight;
      site.values[kPinnedBytes] += bytes;
      site.freed_without += bytes;
    } else {
      add_pages(profile->raw, block, neighbours, &site);
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
