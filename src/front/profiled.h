// What stands before each flavour and its guarded samples (sampled.h): blocks that are samples of a heap profile
// (profile/samples.h) are written down when they are handed out, with what the program asked for and from where.
//
// The fast paths are the flavour's own: a heap's list ends where the next sample falls (core/sample_points.h), so that
// only the slow path hands one out. Large blocks all come from there; each is a sample by its own chance.
#pragma once

#include <atomic>
#include <cstddef>

#include "core/block.h"
#include "core/sample_points.h"
#include "front/frontend.h"
#include "os/fork.h"
#include "os/memory_tags.h"
#include "os/random.h"
#include "profile/labels.h"
#include "profile/samples.h"
#include "profile/tables.h"

namespace annex::front {

template <Frontend Flavour>
struct Profiled : Flavour {
  // Inline, so that the caller of malloc, which jumps to the slow path, is this one's.
  [[gnu::always_inline]] static void* allocate_slow(size_t bytes) noexcept {
    void* const block = Flavour::allocate_slow(bytes);
    if (samples_are_taken()) [[unlikely]]
      note(block, bytes, __builtin_return_address(0));
    return block;
  }
  template <void* slow(size_t) = allocate_slow>
  [[gnu::always_inline]] static void* allocate(size_t bytes) {
    return Flavour::template allocate<slow>(bytes);
  }

  static void* allocate_zeroed(size_t bytes) {
    void* const block = Flavour::allocate_zeroed(bytes);
    if (samples_are_taken()) [[unlikely]]
      note(block, bytes);
    return block;
  }
  static void* allocate_aligned(size_t alignment, size_t bytes) {
    void* const block = Flavour::allocate_aligned(alignment, bytes);
    if (samples_are_taken()) [[unlikely]]
      note(block, bytes);
    return block;
  }

  // A large block of another size is another block, allocated here.
  static bool resize(Span* span, size_t bytes) {
    if (!Flavour::resize(span, bytes)) return false;
    end_all_samples(span);
    if (samples_are_taken()) [[unlikely]]
      note_span(span, start_of(span), bytes);
    return true;
  }
  static void* move(Span* span, size_t bytes) {
    void* const block = Flavour::move(span, bytes);
    if (samples_are_taken()) [[unlikely]]
      note(block, bytes);
    return block;
  }

  static void hold_locks_for_fork() {
    Flavour::hold_locks_for_fork();
    os::fork.hold(profile::lock);
  }

  // What lies ready for other threads at that moment is handed out without samples.
  static bool start_profile(uint64_t rate) {
    if (!profile::start(rate, Flavour::is_free_block)) return false;
    Flavour::give_back(false);
    return true;
  }
  // profile/labels.h. False also where the thread can have no heap.
  static bool set_label(const char* key, const char* value) {
    if (Flavour::sample_points() == nullptr) {
      void* const block = Flavour::allocate(1);
      // Nobody's sample: its place is another block's next.
      if (SamplePoints* const points = own_points()) points->take(os::without_tag(block));
      Flavour::release(block);
    }
    SamplePoints** const points = Flavour::sample_points();
    if (points == nullptr) return false;
    if (*points == nullptr) *points = SamplePoints::make();
    return *points != nullptr && profile::set_label(&(*points)->labels, key, value);
  }

 private:
  static SamplePoints* own_points() {
    SamplePoints** const points = Flavour::sample_points();
    return points != nullptr ? *points : nullptr;
  }

  // The thread has been handed that block. `caller`: whoever asked for it, where that is known.
  [[gnu::cold, gnu::noinline]] static void note(void* block, size_t bytes, const void* caller = nullptr) {
    if (block == nullptr) return;
    SamplePoints* const points = own_points();
    void* const place = os::without_tag(block);
    if (points != nullptr && points->take(place)) {
      Granule* const head = pointee_of(place).head;
      return profile::add(head, place, bytes, block_size(head->size_class), points->labels, caller);
    }
    if (bytes > kMaxSmall / 2 || reinterpret_cast<uintptr_t>(block) % kGranule == 0) {
      if (Span* const span = Flavour::look_up(block).span) note_span(span, block, bytes, caller);
    }
  }
  static void note_span(Span* span, const void* block, size_t bytes, const void* caller = nullptr) {
    static constinit std::atomic<uint64_t> count{0};
    const uint64_t word = os::mixed(count.fetch_add(1, std::memory_order_relaxed) ^ reinterpret_cast<uintptr_t>(block));
    const double chance = sample_chance(span->bytes, sample_rate.load(std::memory_order_relaxed));
    if (static_cast<double>(word >> 11) * 0x1p-53 >= chance) return;
    const SamplePoints* const points = own_points();
    profile::add(span, os::without_tag(block), bytes, span->bytes, points != nullptr ? points->labels : 0, caller);
  }
};

}  // namespace annex::front
