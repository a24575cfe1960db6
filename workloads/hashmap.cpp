// A std::unordered_map that grows to millions of entries, loses a third of them, is searched, and is torn down.
// Stands for: the growing tables of caches, indexes and interpreters; the program on which page faults weigh most,
// because nearly all of its memory is touched for the first time.

#include <unordered_map>

#include "workload.h"

namespace {

struct Value {
  uint64_t words[3];
};

// The key of entry i; another set of keys for another --seed.
uint64_t key(uint64_t i) { return workload::mix(i + workload::g_seed); }

}  // namespace

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "A growing hash map.");
  options.one_thread();
  const uint64_t entries = options.count("--entries", 1500000, "entries to insert");
  const uint64_t maps = options.work("--maps", 1, "times that the whole is done");
  options.done();

  uint64_t checksum = 0;
  const double seconds = workload::seconds_of([&] {
    for (uint64_t m = 0; m < maps; ++m) {
      std::unordered_map<uint64_t, Value> map;
      for (uint64_t i = 0; i < entries; ++i) map[key(i)] = Value{{i, i * 2, i * 3}};
      workload::require(map.size() == entries, "an entry is missing after insertion");
      for (uint64_t i = 0; i < entries; i += 3) map.erase(key(i));
      for (uint64_t i = 0; i < entries; ++i) {
        const auto found = map.find(key(i));
        workload::require((found == map.end()) == (i % 3 == 0), "the map holds the wrong entries");
        if (found != map.end()) checksum += found->second.words[2] - found->second.words[0];
      }
      for (uint64_t i = 0; i < entries; i += 3) map[key(i)] = Value{{i, 0, i}};
      workload::require(map.size() == entries, "an entry is missing at the end");
    }
  });
  workload::report("hashmap", entries * maps * 3, seconds, checksum);
}
