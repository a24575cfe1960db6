// Samples: see samples.h.
#include "profile/samples.h"

#include <sys/syscall.h>

#include "core/sample_points.h"
#include "os/call_stack.h"
#include "os/clock.h"
#include "os/system_call.h"
#include "pages/page_heap.h"
#include "profile/sites.h"
#include "profile/tables.h"

namespace annex::profile {

namespace {

constinit IsFree* is_free = nullptr;

// --- under the lock

// An index; 0 where there is no memory, or no index left.
uint32_t take_place() {
  if (const uint32_t index = tables.empty; index != 0) {
    tables.empty = sample_at(index).next;
    return index;
  }
  if (tables.places == 0) tables.places = 1;
  const uint32_t index = tables.places;
  if (index / kSamplesInChunk == kMostChunks) return 0;
  Sample*& chunk = tables.chunks[index / kSamplesInChunk];
  if (chunk == nullptr) {
    void* const fresh = page_heap.map_metadata(kSamplesInChunk * sizeof(Sample));
    if (fresh == nullptr) return 0;
    __atomic_store_n(&chunk, static_cast<Sample*>(fresh), __ATOMIC_RELEASE);
  }
  __atomic_store_n(&tables.places, index + 1, __ATOMIC_RELEASE);
  return index;
}

// Below 1 ms, 10 ms, ...
size_t lifetime_of(uint64_t ms) {
  size_t at = 0;
  for (uint64_t end = 1; at + 1 < kLifetimes && ms >= end; end *= 10) ++at;
  return at;
}

// The sample's block is no longer in use; the place is empty.
void end(uint32_t index, uint64_t now_ms) {
  Sample& sample = sample_at(index);
  sample.site->freed += sample.weight;
  sample.site->lifetimes[lifetime_of(now_ms - sample.born_ms)] += sample.weight;
  __atomic_store_n(&sample.block, 0, __ATOMIC_RELEASE);
  sample.head = nullptr;
  sample.next = tables.empty;
  tables.empty = index;
}

// Of a slab or span: those that are free, or all.
void end_of(Granule* head, bool all) {
  const uint64_t now = os::now_ms();
  uint32_t* link = &head->samples;
  while (const uint32_t index = __atomic_load_n(link, __ATOMIC_RELAXED)) {
    const Sample& sample = sample_at(index);
    if (all ||
        (head->kind == Kind::kSlab && is_free(static_cast<Slab*>(head), reinterpret_cast<const void*>(sample.block)))) {
      const uint32_t next = sample.next;
      end(index, now);
      __atomic_store_n(link, next, __ATOMIC_RELAXED);
    } else {
      link = &sample_at(index).next;
    }
  }
}

}  // namespace

bool start(uint64_t rate, IsFree* is_free_here) {
  os::prepare_call_stacks();
  if (!os::call_stacks_are_prepared()) return false;
  const os::Guard guard(lock);
  is_free = is_free_here;
  annex::end_samples = [](Granule* head, bool all) {
    const os::Guard inside(lock);
    end_of(head, all);
  };
  if (tables.began_unix_ms == 0) tables.began_unix_ms = os::unix_ms();
  tables.rate = tables.last_rate = rate;
  sample_begins.fetch_add(1, std::memory_order_relaxed);
  sample_rate.store(rate, std::memory_order_release);
  return true;
}

void stop() {
  const os::Guard guard(lock);
  tables.rate = 0;
  sample_rate.store(0, std::memory_order_relaxed);
}

void add(Granule* head, const void* block, size_t asked, size_t size, uint32_t labels, const void* caller) {
  const uint64_t rate = sample_rate.load(std::memory_order_acquire);
  if (rate == 0) return;
  Stack stack;
  if (os::is_unwinder(caller)) {
    stack.add(caller);
  } else {
    stack.capture();
  }
  const uint64_t now = os::now_ms();
  const double weight = 1 / sample_chance(size, rate);
  const os::Guard guard(lock);
  Site* const site = site_of(stack, labels);
  const uint32_t index = site != nullptr ? take_place() : 0;
  if (index == 0) {
    ++tables.dropped;
    return;
  }
  ++site->samples;
  site->objects += weight;
  site->bytes += weight * static_cast<double>(asked);
  Sample& sample = sample_at(index);
  sample.head = head;
  sample.site = site;
  sample.asked = asked;
  sample.size = size;
  sample.weight = weight;
  sample.born_ms = now;
  sample.thread = static_cast<uint32_t>(os::system_call(SYS_gettid));
  sample.next = __atomic_load_n(&head->samples, __ATOMIC_RELAXED);
  __atomic_store_n(&sample.block, reinterpret_cast<uintptr_t>(block), __ATOMIC_RELEASE);
  __atomic_store_n(&head->samples, index, __ATOMIC_RELAXED);
}

void end_freed() {
  const os::Guard guard(lock);
  for (uint32_t index = 1; index < tables.places; ++index) {
    // Each list once, at its first sample; what comes first when that has ended has been looked at.
    const Sample& sample = sample_at(index);
    if (sample.block != 0 && sample.head->samples == index) end_of(sample.head, false);
  }
}

}  // namespace annex::profile
