// Snapshots: see snapshot.h.
#include "process/snapshot.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <unordered_map>

#include "process/arenas.h"
#include "process/proc.h"

namespace annex::inspect {

namespace {

// One of Books' numbers, which are all of that size.
uint64_t book(const Target& target, size_t offset) {
  return target.memory.get<uint64_t>(number(target.annex.books) + offset);
}

void read_books(const Target& target, Snapshot* to) {
  const uint64_t beside = book(target, offsetof(Books, beside));
  to->committed = book(target, offsetof(Books, committed)) + beside;
  to->metadata = book(target, offsetof(Books, metadata)) + beside;
  to->dirty = book(target, offsetof(Books, dirty));
  to->peak_in_use = book(target, offsetof(Books, peak));
  to->purged_total = book(target, offsetof(Books, purged_total));
  to->huge_page_bytes = book(target, offsetof(Books, huge));
}

HeapCounts read_heap(const Memory& memory, const observe::ListLayout& list, uint64_t heap) {
  HeapCounts counts = {.owner = heap + list.owner};
  if (memory.get<uint64_t>(heap + list.holder) != 0) {
    counts.holder = HeapCounts::Holder::kThread;
    counts.thread = memory.get<long>(heap + list.thread);
  } else if (list.has_pooled == 0 || memory.get<uint8_t>(heap + list.pooled) != 0) {
    counts.holder = HeapCounts::Holder::kEnded;
  }
  counts.refills = memory.get<uint64_t>(heap + list.refills);
  if (list.has_pooled != 0) counts.batches = memory.get<uint64_t>(heap + list.batches);
  return counts;
}

void read_heaps(const Memory& memory, const observe::ListLayout& list, std::vector<HeapCounts>* heaps) {
  if (list.first == nullptr) return;
  constexpr size_t kMost = 1 << 20;
  uint64_t heap = memory.get<uint64_t>(number(list.first));
  for (size_t i = 0; heap != 0 && i < kMost; ++i) {
    heaps->push_back(read_heap(memory, list, heap));
    heap = memory.get<uint64_t>(heap + list.next);
  }
}

// Adds up what runs there are.
class Sum {
 public:
  explicit Sum(Snapshot* to) : to_(to) {
    to->slabs = to->used = to->used_spans = to->span_count = 0;
    std::fill(std::begin(to->classes), std::end(to->classes), ClassCounts());
    for (HeapCounts& heap : to->heaps) by_owner_[heap.owner] = &heap;
    for (auto& [owner, heap] : by_owner_) heap->slabs = heap->bytes = heap->used = 0;
    to->no_heap = {};
  }

  void add(const SeenRun& run) {
    switch (run.kind) {
      case Kind::kSlab:
        return add_slab(run.slab(), run.length * kGranule);
      case Kind::kSpan:
        ++to_->span_count;
        to_->used_spans += run.span().bytes;
        to_->used += run.span().bytes;
        return;
      case Kind::kNoBytes:
        to_->slabs += run.length * kGranule;
        to_->used += std::min<uint64_t>(run.span().asked * kMinAlignment, run.length * kGranule);
        return;
      default:
        return;
    }
  }

 private:
  void add_slab(const Slab& slab, uint64_t bytes) {
    const annex::SizeClass c = slab.size_class;
    const uint64_t capacity = slab_capacity(c);
    // While its owner changes the one and then the other, the sum is neither's.
    const uint64_t used = std::min<uint64_t>(used_of(&slab), capacity);
    const uint64_t made = std::min<uint64_t>(slab.carved, capacity);
    ClassCounts& counts = to_->classes[c];
    ++counts.slabs;
    counts.bytes += bytes;
    counts.blocks += capacity;
    counts.used += used;
    counts.made += std::max(made, used);
    counts.in_holes += std::min<uint64_t>(slab.in_holes, made > used ? made - used : 0);
    to_->slabs += bytes;
    to_->used += used * block_size(c);
    const uint64_t owner = slab.owner != nullptr ? number(slab.owner) : number(slab.support_heap);
    const auto found = by_owner_.find(owner);
    HeapCounts* const heap = found != by_owner_.end() ? found->second : &to_->no_heap;
    ++heap->slabs;
    heap->bytes += bytes;
    heap->used += used * block_size(c);
  }

  Snapshot* to_;
  std::unordered_map<uint64_t, HeapCounts*> by_owner_;
};

void walk_into(const Target& target, Snapshot* snapshot) {
  Sum sum(snapshot);
  snapshot->unclear_granules = walk_arenas(target, [&](const SeenRun& run) { sum.add(run); });
}

}  // namespace

uint64_t Snapshot::free_touched() const {
  uint64_t bytes = 0;
  for (annex::SizeClass c = 0; c < kClasses; ++c) {
    bytes += (classes[c].made - classes[c].in_holes - classes[c].used) * block_size(c);
  }
  return bytes;
}

double Snapshot::fragmentation() const {
  const double idle = static_cast<double>(free_touched() + dirty);
  const double all = idle + static_cast<double>(used);
  return all > 0 ? idle / all : 0;
}

Snapshot take_snapshot(const Target& target, Resident how) {
  Snapshot snapshot;
  const ProcStatus status = read_status(target.memory.process());
  snapshot.process = target.memory.process();
  snapshot.program = status.name;
  snapshot.version = target.version();
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  snapshot.unix_ms = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
  snapshot.resident = status.resident;
  if (how == Resident::kExact) snapshot.resident = exact_resident(snapshot.process).value_or(status.resident);
  snapshot.peak_resident = std::max(status.peak_resident, snapshot.resident);

  read_heaps(target.memory, target.annex.heaps, &snapshot.heaps);
  read_heaps(target.memory, target.annex.clients, &snapshot.heaps);
  for (const HeapCounts& heap : snapshot.heaps) {
    snapshot.slab_refills += heap.refills;
    snapshot.remote_batches += heap.batches;
  }
  snapshot.heap_count = snapshot.heaps.size();
  snapshot.arenas = target.memory.get(target.annex.arenas.count);
  if (target.annex.clients.first != nullptr) {
    snapshot.support_cpu_us = cpu_us_of_threads(snapshot.process, "annex-support");
  }
  read_books(target, &snapshot);
  // Where a walk met with changes, others may meet with fewer.
  constexpr int kTries = 4;
  Snapshot best;
  for (int i = 0; i < kTries; ++i) {
    walk_into(target, &snapshot);
    if (i == 0 || snapshot.unclear_granules < best.unclear_granules) best = snapshot;
    if (best.unclear_granules == 0) break;
  }
  return best;
}

}  // namespace annex::inspect
