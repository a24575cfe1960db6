// The malloc cache's contents: see malloc_cache.h.
#include "hardware/malloc_cache.h"

#include <algorithm>

namespace annex::sim {

MallocCache::Entry* MallocCache::find(uint32_t number) {
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [=](const Entry& entry) { return entry.of.number == number; });
  return found == entries_.end() ? nullptr : &*found;
}

std::optional<MallocCache::SizeClass> MallocCache::look_up(uint64_t size) {
  const uint64_t wanted = key(size);
  for (Entry& entry : entries_) {
    if (wanted < entry.least || wanted > entry.most) continue;
    touch(entry);
    return entry.of;
  }
  return {};
}

bool MallocCache::update(uint64_t size, SizeClass of) {
  if (Entry* known = find(of.number)) {
    known->least = std::min(known->least, key(size));
    known->most = std::max(known->most, key(of.bytes));
    touch(*known);
    return false;
  }
  if (most_ == 0) return false;
  const bool full = entries_.size() >= most_;
  if (full) {
    entries_.erase(std::min_element(entries_.begin(), entries_.end(),
                                    [](const Entry& a, const Entry& b) { return a.used < b.used; }));
  }
  touch(entries_.emplace_back(Entry{.least = key(size), .most = key(of.bytes), .of = of}));
  return full;
}

uint64_t MallocCache::filled_by(uint32_t number) const {
  const Entry* entry = find(number);
  return entry == nullptr ? 0 : entry->filled_by;
}

std::optional<MallocCache::Blocks> MallocCache::pop(uint32_t number) {
  Entry* entry = find(number);
  if (entry == nullptr) return {};
  touch(*entry);
  const Blocks blocks = entry->blocks;
  if (blocks.head == 0 || blocks.next == 0) {
    entry->blocks = {};
    return {};
  }
  entry->blocks = {.head = blocks.next};
  return blocks;
}

void MallocCache::push(uint32_t number, Address block) {
  Entry* entry = find(number);
  if (entry == nullptr) return;
  touch(*entry);
  entry->blocks = block == 0 ? Blocks{} : Blocks{block, entry->blocks.head};
}

bool MallocCache::wants_next(uint32_t number) const {
  const Entry* entry = find(number);
  return entry != nullptr && entry->blocks.next == 0;
}

void MallocCache::fill(uint32_t number, Blocks blocks, uint64_t prefetch) {
  Entry* entry = find(number);
  if (entry == nullptr) return;
  touch(*entry);
  entry->blocks = blocks;
  entry->filled_by = prefetch;
}

bool MallocCache::flush() {
  const bool any = !entries_.empty();
  entries_.clear();
  return any;
}

}  // namespace annex::sim
