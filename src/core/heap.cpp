// Heaps: see heap.h.
#include "core/heap.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/die.h"
#include "core/holes.h"
#include "os/all_threads.h"
#include "os/clock.h"
#include "os/options.h"
#include "os/pages.h"
#include "os/random.h"
#include "pages/arena.h"
#include "pages/commitment.h"
#include "pages/page_heap.h"
#include "policy/policy.h"

namespace annex {

namespace {

// How many slabs a refill sees or walks in a round of tidying; and how many are walked in a round at most: some 5 ms of
// a second.
constexpr uint32_t kSeenAtOnce = 64;
constexpr uint32_t kWalkedAtOnce = 4;
constexpr uint32_t kWalkedInRound = 512;
constexpr uint64_t kShortestRoundMs = 1000;

}  // namespace

Block* Heap::refill(SizeClass c) {
  if (tidies_next()) [[unlikely]]
    tidy();
  ++refills;
  Slab* slab = life_.choose(c, [this](SizeClass of) { return new_slab(of); });
  if (slab == nullptr) return nullptr;
  const uint32_t used = used_of(slab);
  Block* const list = slab->free != nullptr ? take_list(slab) : carve(slab);
  if (samples_are_taken()) [[unlikely]]
    cut_at_sample(slab, list, used_of(slab) - used);
  return list;
}

// The list of so many blocks of the slab, the first of which is handed out next, ends before the next sample; what is
// behind goes back to the slab.
[[gnu::cold]] void Heap::cut_at_sample(Slab* slab, Block* list, uint32_t count) {
  if (points == nullptr) points = SamplePoints::make();
  if (points == nullptr) return;
  points->follow();
  if (points->hand_out(slab->size_class, list)) slab->sampled = true;
  uint32_t& until = points->until[slab->size_class];
  const uint32_t left = count - 1;
  const uint32_t kept = std::min(left, until);
  until -= kept;
  if (kept == left) return;
  Block* last = list;
  for (uint32_t i = 0; i < kept; ++i) last = next_of(last);
  slab->free = next_of(last);
  set_next(last, nullptr);
  set_used(slab, used_of(slab) - (left - kept));
}

// How many clean runs a heap of so many granules takes at a time beside the one that it needs: a share of what it has,
// as it is likely to grow by as much, and few enough not to spread the heaps' memory over too many huge pages.
constexpr uint32_t spares_wanted(uint32_t granules) { return std::min(granules / 2 + 1, Spares::kMost); }

// nullptr where memory is exhausted. Dirty memory first, the heap's own and then the page heap's; but a class's first
// slab is rather of clean memory (pages/commitment.h).
Slab* Heap::new_slab(SizeClass c) {
  const bool first = life_.current(c) == nullptr;
  if (!first) {
    if (Slab* slab = take_cached(c)) return slab;
  }
  if (first || page_heap.books.dirty == 0) {
    if (Slab* slab = take_spare(c)) return slab;
  }
  touched_.tell();  // by which the page heap decides what pages fresh memory gets
  Slab* slab = make_slab(c, {this, number}, first, spares_.count == 0 ? spares_wanted(granules_) : 0, &spares_);
  if (slab == nullptr) return first ? take_cached(c) : take_spare(c);  // what was passed over
  granules_ += slab_granules(c);
  return slab;
}

// An empty slab that waits, made one of the class; nullptr where there is none of its length.
Slab* Heap::take_cached(SizeClass c) {
  Slab* slab = cache_.pop(slab_granules(c));
  if (slab != nullptr) {
    remake_slab(slab, c, os::mixed(os::mixed(slab->key) + ++remade_));
    forget_walks(slab);
  }
  return slab;
}

// A clean run that waits, made a slab; nullptr where there is none, or it is too short.
Slab* Heap::take_spare(SizeClass c) {
  if (spares_.count == 0 || slab_granules(c) > 1) return nullptr;
  ++granules_;
  return make_slab_of(spares_.runs[--spares_.count], c, {this, number});
}

// None of the slab's blocks is in use, and it is in no list.
void Heap::drop(Slab* slab) {
  const uint32_t granules = slab_granules(slab->size_class);
  touched_.subtract(usable_of(slab) * block_size(slab->size_class), granules_);
  end_slab(slab);
  if (cache_.push(slab, granules, granules_ - taken_away_.load(std::memory_order_relaxed))) return;
  granules_ -= granules;
  page_heap.give_slab(slab);
}

// Fresh blocks, or those of a hole.
Block* Heap::carve(Slab* slab) {
  if (slab->in_holes > 0) [[unlikely]] {
    forget_walks(slab);
    end_freed_samples(slab);  // before what says that they are free is gone
    const Blocks blocks = fill_hole(slab);
    return link(slab, blocks.first, blocks.count, false);
  }
  const uint32_t first = slab->carved;
  const uint32_t count = blocks_to_carve(slab);
  Block* const list = link(slab, first, count, slab->fresh);
  set_carved(slab, first + count);
  return list;
}

// A list of so many blocks of the slab, from that one on, which count as used.
Block* Heap::link(Slab* slab, uint32_t first, uint32_t count, bool zero) {
  const size_t size = block_size(slab->size_class);
  char* const start = start_of(slab) + first * size;
  Block* const list = link_blocks(slab->key, start, size, count, zero, &chance_);
  set_used(slab, used_of(slab) + count);
  touched_.add(count * size, granules_);
  return list;
}

// What make(slab) gives back has not been touched.
template <class Make>
size_t Heap::make_holes_in(Slab* slab, Make make) {
  const size_t before = usable_of(slab);
  const size_t bytes = purge_uncarved(slab) + make(slab);
  touched_.subtract((before - usable_of(slab)) * block_size(slab->size_class), granules_);
  return bytes;
}

[[gnu::cold]] size_t Heap::make_holes(const os::Stop& stop) {
  size_t total = 0;
  life_.for_each_partial([&](Slab* slab) {
    total += make_holes_in(slab, annex::make_holes);
    return !stop();
  });
  touched_.tell();
  return total;
}

[[gnu::cold]] void Heap::tidy() {
  if (page_heap.books.dirty >= commitment::kDirtySlack) page_heap.purge_due_if_free(0);
  if (!in_round_) {
    const int64_t delay = os::options.purge_delay_ms;
    if (delay < 0) return;
    const uint64_t now = os::now_ms();
    const uint64_t period = std::max(static_cast<uint64_t>(delay), kShortestRoundMs);
    const uint64_t before = std::exchange(asked_ms_, now);
    if (before == 0) round_ms_ = now;  // a new heap has nothing to give yet
    if (now - round_ms_ < period) return;
    after_rest_ = now - before >= period;  // hardly anything was allocated since then
    round_ms_ = now;
    in_round_ = true;
    walks_left_ = after_rest_ ? UINT32_MAX : kWalkedInRound;
  }
  uint32_t walks = kWalkedAtOnce;
  for (uint32_t seen = 0; seen < kSeenAtOnce && walks > 0; ++seen) {
    Slab* const slab = life_.next_in_turn();
    if (slab == nullptr) {
      in_round_ = false;
      break;
    }
    if (slab->free == nullptr || walks_left_ == 0) continue;
    if (!is_worth_a_walk(slab, after_rest_ ? Which::kPromising : Which::kSettled)) continue;
    --walks;
    --walks_left_;
    make_holes_in(slab, annex::make_holes);
  }
}

namespace {

uint32_t length_of(const Block* list) {
  uint32_t length = 0;
  for (; list != nullptr; list = next_of(list)) ++length;
  return length;
}

// Those of the slab.
HeldBack in_slab(HeldBack held, const Slab* slab) {
  const auto from = [&](size_t offset) {
    const char* const place = start_of(slab) + offset;
    return std::partition_point(held.begin(), held.end(),
                                [=](const HeldBlock& one) { return reinterpret_cast<const char*>(one.block) < place; });
  };
  return held.empty() ? held : HeldBack(from(0), from(slab_granules(slab->size_class) * kGranule));
}

}  // namespace

// Calls act(slab) for each full slab of the heap in which some of those lie: it is in none of the heap's lists.
template <class Act>
void Heap::for_each_full(HeldBack held, Act act) const {
  while (!held.empty()) {
    Granule* const granule = granule_of(held.front().block);
    Slab* const slab = static_cast<Slab*>(granule->kind == Kind::kSlabTail ? granule - granule->back : granule);
    held = held.subspan(in_slab(held, slab).size());
    if (slab->owner == this && slab->state == SlabState::kFull) act(slab);
  }
}

// Whether to walk a slab of a heap that is taken. Then slab->kept is the first of its free blocks.
[[gnu::cold]] bool Heap::note_free_of(Slab* slab, Which which, HeldBack held) {
  slab->walks = !slab->aside && is_worth_a_walk(slab, which, static_cast<uint32_t>(in_slab(held, slab).size()));
  if (slab->walks) slab->kept = __atomic_load_n(&slab->free, __ATOMIC_RELAXED);
  return slab->walks;
}

[[gnu::cold]] size_t Heap::make_holes_aside(Which which, const os::Stop& stop, HeldBack held) {
  // What is read before the barrier of a list's first block was right when it was read, unless the block has been
  // handed out before: then it is not the first any more after the barrier.
  struct {
    bool wanted;
    Block* first;
    Block words;
  } current[kClasses];
  for (SizeClass c = 0; c < kClasses; ++c) {
    Slab* const slab = life_.current(c);
    current[c].wanted = slab != nullptr && note_free_of(slab, which, held);
    if (!current[c].wanted) continue;
    current[c].first = __atomic_load_n(&list_of(c), __ATOMIC_RELAXED);
    if (current[c].first != nullptr) current[c].words = *current[c].first;
  }
  life_.for_each_partial([&](Slab* slab) {
    note_free_of(slab, which, held);
    return true;
  });
  Slab* full = nullptr;  // those to walk: a block in `held` says nothing of its slab any more once that is let go of
  for_each_full(held, [&](Slab* slab) {
    if (note_free_of(slab, which, held)) slab->next = std::exchange(full, slab);
  });
  if (!os::barrier_in_all_threads()) return 0;
  size_t total = 0;
  bool goes_on = true;
  for (SizeClass c = 0; c < kClasses && which != Which::kSettled; ++c) {
    if (Slab* const slab = life_.current(c); slab != nullptr && !stop()) total += purge_uncarved(slab);
  }
  // False where the slab has been let go of.
  const auto walk = [&](Slab* slab, Ready ready) {
    const HeldBack its = in_slab(held, slab);
    if (slab->kept == nullptr && ready.first == nullptr && its.empty()) return true;
    if (!goes_on) {
      forget_walks(slab);
      return true;
    }
    if (os::kBarriersAreSeen && !its.empty() && slab->state != SlabState::kCurrent && only_held_back(slab, its)) {
      for (const HeldBlock& one : its) *one.place = nullptr;
      life_.came_back(slab, 0);
      drop(slab);
      return false;
    }
    total += make_holes_in(slab, [=](Slab* of) { return annex::make_holes_aside(of, ready, its); });
    goes_on = !stop();
    return true;
  };
  for (SizeClass c = 0; c < kClasses; ++c) {
    const auto& [wanted, first, words] = current[c];
    if (!wanted) continue;
    Ready ready = {};
    if (first != nullptr && __atomic_load_n(&list_of(c), __ATOMIC_RELAXED) == first)
      ready = {first, next_in(first, words)};
    if (ready.second == nullptr) ready = {};
    const uint32_t left_in_list = points != nullptr ? length_of(ready.second) : 0;
    Slab* const slab = life_.current(c);
    if (walk(slab, ready) && slab->aside && left_in_list > 0) points->put_back(c, left_in_list);
  }
  life_.for_each_partial([&](Slab* slab) {
    if (slab->walks) walk(slab, {});
    return true;
  });
  while (full != nullptr) {
    Slab* const slab = std::exchange(full, full->next);
    if (walk(slab, {}) && slab->aside) life_.becomes_partial(slab);
  }
  give_runs();
  return total;
}

[[gnu::cold]] void Heap::end_aside() {
  const auto end = [this](Slab* slab, Block** list) {
    if (!slab->aside) return;
    annex::end_aside(slab, list);
    if (slab->countdown == 0) {
      // The owner is in the middle of a free, which has seen this and settles the slab next.
      slab->used_after = static_cast<uint16_t>(slab->used_after - slab->freed_aside);
    } else {
      settle(slab, used_of(slab) - slab->freed_aside);
    }
  };
  for (SizeClass c = 0; c < kClasses; ++c) {
    if (Slab* const slab = life_.current(c)) end(slab, &list_of(c));
  }
  life_.for_each_partial([&](Slab* slab) {
    end(slab, nullptr);
    return true;
  });
}

// The countdown ends when a fair share is free again.
void Heap::Linked::becomes_full(Slab* slab) {
  const uint32_t share = fair_share(slab->carved);
  slab->used_after = static_cast<uint16_t>(slab->carved - share);
  slab->countdown = static_cast<uint16_t>(share);
}

void Heap::put_back(Slab* slab, const Chain& chain) {
  // The chain is not walked: its blocks are in another core's caches.
  set_next(chain.last, slab->free);
  slab->free = chain.first;
  if (chain.count < slab->countdown) {
    slab->countdown = static_cast<uint16_t>(slab->countdown - chain.count);
  } else {
    settle(slab, used_of(slab) - chain.count);
  }
}

void Heap::settle(Slab* slab, uint32_t used) noexcept {
  // More blocks have come back than were out: less than none is in use.
  if (used > usable_of(slab)) die(kFreedTwice, slab->free, slab);
  set_used(slab, used);
  // What the heap's list holds counts as used.
  if (used == 0 && slab->state == SlabState::kCurrent && list_of(slab->size_class) != nullptr)
    die(kFreedTwice, slab->free, slab);
  if (life_.came_back(slab, used)) drop(slab);
}

void Heap::flush() {
  if (points != nullptr) points->forget();
  for (SizeClass c = 0; c < kClasses; ++c) {
    Slab* slab = life_.current(c);
    if (slab == nullptr) continue;
    uint32_t used = used_of(slab);
    Policy::MallocSteps::drop(c);
    Block*& list = list_of(c);
    while (Block* block = list) {
      list = next_of(block);
      set_next(block, slab->free);
      slab->free = block;
      --used;
    }
    set_used(slab, used);
    life_.leave_current(c, used);
    if (used == 0) drop(slab);
  }
  give_runs();
}

void Heap::give_cached_runs() {
  cache_.take_all([this](Slab* run) {
    note_taken_away(run->length);
    page_heap.give_slab(run);
  });
}

void Heap::give_runs() {
  give_cached_runs();
  page_heap.give(&spares_);
  touched_.tell();
}

}  // namespace annex
