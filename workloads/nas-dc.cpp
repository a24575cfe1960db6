// A data cube: the sums of a table's measure, grouped by every subset of its attributes, by several threads.
// Stands for: DC of the NAS parallel benchmarks (Frumkin and Shabanov, 2003), which the SpeedMalloc paper runs as the
// one of them that allocates while it works. As there, each view is a search tree of nodes allocated one by one, made
// from the smallest view that has one attribute more, and views are handed out to threads. Levels of the lattice come
// and go: the nodes of a view are freed by whichever thread is free, when all views below are made.

#include <algorithm>
#include <atomic>
#include <bit>
#include <map>

#include "workload.h"

using workload::Random;

namespace {

constexpr uint32_t kBits = 6;  // of a key for each attribute
constexpr uint32_t kMost = 10;

struct Cell {
  uint64_t sum = 0;
  uint64_t tuples = 0;
};

using View = std::map<uint64_t, Cell>;  // from the attributes, packed, to what was added up

struct Entry {
  uint32_t attributes;  // a bit for each that the view is grouped by
  View view;
};

// The bits of a key that belong to these attributes.
uint64_t mask_of(uint32_t attributes) {
  uint64_t mask = 0;
  for (uint32_t a = 0; a < kMost; ++a) {
    if ((attributes >> a & 1) != 0) mask |= ((uint64_t{1} << kBits) - 1) << (a * kBits);
  }
  return mask;
}

// Calls work(i) for 0 .. count - 1, each on whichever thread is free.
void share_out(uint32_t threads, size_t count, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next{0};
  workload::on_threads(threads, [&](uint32_t) {
    for (size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) work(i);
  });
}

class Cube {
 public:
  Cube(uint32_t attributes, uint32_t threads) : attributes_(attributes), threads_(threads) {}

  // Reads the table into the view by all attributes.
  void read(uint64_t tuples) {
    Random random(19);
    View view;
    for (uint64_t i = 0; i < tuples; ++i) {
      uint64_t key = 0;
      // Attribute a has 4, 8, ... up to 64 values, small ones more often.
      for (uint32_t a = 0; a < attributes_; ++a) {
        const uint32_t values = 4u << (a % 5);
        key |= uint64_t{random.below(random.below(values) + 1)} << (a * kBits);
      }
      const uint32_t measure = random.below(1000);
      add(view, key, {measure, 1});
      total_.sum += measure;
      ++total_.tuples;
    }
    level_.push_back({(1u << attributes_) - 1, std::move(view)});
    ops_ += tuples;
    account(level_.front());
  }

  // Makes so many other views, those with most attributes first.
  void aggregate(uint64_t views) {
    for (uint32_t size = attributes_; size-- > 0 && views > 0;) {
      std::vector<Entry> below;
      for (uint32_t attributes = 0; attributes < 1u << attributes_ && below.size() < views; ++attributes) {
        if (static_cast<uint32_t>(std::popcount(attributes)) == size) below.push_back({attributes, {}});
      }
      views -= below.size();
      share_out(threads_, below.size(), [&](size_t i) { make(below[i]); });
      share_out(threads_, level_.size(), [&](size_t i) { level_[i].view.clear(); });
      level_ = std::move(below);
    }
  }

  uint64_t ops() const { return ops_.load(); }
  uint64_t checksum() const { return checksum_.load(); }

 private:
  static void add(View& view, uint64_t key, const Cell& cell) {
    Cell& into = view[key];
    into.sum += cell.sum;
    into.tuples += cell.tuples;
  }

  const Entry& smallest_parent(uint32_t attributes) const {
    const Entry* best = nullptr;
    for (const Entry& entry : level_) {
      if ((entry.attributes & attributes) != attributes) continue;
      if (best == nullptr || entry.view.size() < best->view.size()) best = &entry;
    }
    return *best;
  }

  void make(Entry& entry) {
    const Entry& parent = smallest_parent(entry.attributes);
    const uint64_t mask = mask_of(entry.attributes);
    for (const auto& [key, cell] : parent.view) add(entry.view, key & mask, cell);
    ops_.fetch_add(parent.view.size(), std::memory_order_relaxed);
    account(entry);
  }

  // Whatever a view is grouped by, its sums add up to the table's.
  void account(const Entry& entry) {
    Cell all;
    uint64_t checksum = 0;
    for (const auto& [key, cell] : entry.view) {
      all.sum += cell.sum;
      all.tuples += cell.tuples;
      checksum += workload::mix(key ^ cell.sum << 8 ^ uint64_t{entry.attributes} << 40);
    }
    workload::require(all.sum == total_.sum && all.tuples == total_.tuples, "a view's sums do not add up");
    checksum_.fetch_add(checksum, std::memory_order_relaxed);
  }

  const uint32_t attributes_;
  const uint32_t threads_;
  Cell total_;
  std::vector<Entry> level_;
  std::atomic<uint64_t> ops_{0};
  std::atomic<uint64_t> checksum_{0};
};

}  // namespace

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "A data cube: sums by every subset of the attributes (DC of NAS).");
  const uint32_t threads = options.threads();
  const uint32_t tuples = options.count("--tuples", 250000, "tuples of the table");
  const uint32_t attributes = options.count("--attributes", 7, "attributes of a tuple, at most 10");
  workload::Options::accept(attributes >= 1 && attributes <= kMost, "--attributes must be 1 to 10");
  const uint64_t views = options.work("--views", (1u << attributes) - 1, "views made of the table; by default all");
  options.done();

  uint64_t ops = 0;
  uint64_t checksum = 0;
  const double seconds = workload::seconds_with_building([&] {
    Cube cube(attributes, threads);
    cube.read(tuples);
    {
      const workload::Region region;
      cube.aggregate(views);
    }
    ops = cube.ops();
    checksum = cube.checksum();
  });
  workload::report("nas-dc", ops, seconds, checksum);
}
