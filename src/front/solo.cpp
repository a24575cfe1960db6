// Solo: see solo.h.
#include <gnu/libc-version.h>
#include <sys/single_threaded.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/block.h"
#include "core/commitment.h"
#include "core/purger.h"
#include "core/runs.h"
#include "core/span.h"
#include "front/front.h"
#include "front/request.h"
#include "os/fork.h"
#include "os/lock.h"
#include "os/mallacc_markers.h"

namespace annex {

CommitBooks* const commit_books = nullptr;

}  // namespace annex

namespace annex::front {

constinit Solo solo;

namespace {

constinit os::Lock lock;  // of the heap, once locked
constinit bool locked = false;
constinit bool ready = false;
constinit Block* parked[kClasses] = {};  // the heap's free lists, once locked

// glibc 2.34 merged the thread library into libc and set the order that solo.h relies on.
bool order_is_known() {
  const char* version = gnu_get_libc_version();
  if (strncmp(version, "2.", 2) != 0) return false;
  const int minor = atoi(version + 2);
  return minor >= 34 && minor <= 41;
}

// Whether libc's own allocations, such as that of a new thread's TLS vector, come to this library.
bool libc_allocates_here() {
  void* (*volatile get)(size_t, size_t) = calloc;
  void (*volatile put)(void*) = free;
  void* block = get(1, 1);
  const bool here = arena_of(block) != nullptr;
  put(block);
  return here;
}

void close_fast_paths() {
  std::copy(std::begin(solo.heap.free), std::end(solo.heap.free), parked);
  std::fill(std::begin(solo.heap.free), std::end(solo.heap.free), nullptr);
  solo.reach = kNowhere;
  __atomic_store_n(&locked, true, __ATOMIC_RELEASE);
}

// First on every slow path, and in calloc.
bool is_locked() {
  if (__atomic_load_n(&locked, __ATOMIC_ACQUIRE)) return true;
  if (!ready) {
    if (!set_up()) return false;
    ready = true;
    if (!order_is_known()) close_fast_paths();
  }
  if (!__libc_single_threaded && !locked) close_fast_paths();
  if (!locked) solo.reach = primary.reach;
  return locked;
}

void* pop_or_refill(Block** list, SizeClass c) {
  MALLACC_DROP(uint32_t{c});
  if (list[c] == nullptr) {
    Block* block = solo.heap.refill(c);
    if (block == nullptr) return out_of_memory();
    list[c] = block;
  }
  return pop(&list[c]);
}

void* pop_small(SizeClass c) {
  if (!is_locked()) return pop_or_refill(solo.heap.free, c);
  os::Guard guard(lock);
  return pop_or_refill(parked, c);
}

void* allocate_small(SizeClass c) {
  void* block = pop_small(c);
  start_wanted_purger();
  return block;
}

}  // namespace

void* allocate_slow(size_t bytes) noexcept {
  if (bytes > kMaxSmall) {
    is_locked();
    return allocate_large(bytes, kMinAlignment);
  }
  const SizeClass c = class_of(bytes);
  MALLACC_DROP(uint32_t{c});
  return solo.heap.free[c] != nullptr ? pop(&solo.heap.free[c]) : allocate_small(c);
}

void* allocate_zeroed(size_t bytes) {
  if (!__libc_single_threaded) [[unlikely]]
    is_locked();  // the moment that solo.h speaks of
  if (bytes > kMaxSmall) return allocate_large_zeroed(bytes);
  void* block = allocate(bytes);
  return block == nullptr ? nullptr : memset(block, 0, bytes);
}

void* allocate_aligned(size_t alignment, size_t bytes) {
  const SizeClass c = aligned_class(alignment, bytes);
  if (c < kClasses) return allocate_small(c);
  is_locked();
  return allocate_large(bytes, alignment);
}

void release_slow(void* address) noexcept {
  if (address == nullptr) return;
  const bool guarded = is_locked();
  Granule* head = live_block_or_die(address);
  if (head->kind == Kind::kSpan) return free_span(head);
  if (guarded) lock.lock();
  // Once more, where no other thread can mark it meanwhile. The look before has fetched the block's line without the
  // lock.
  if (is_marked(head->key, address)) os::fatal(kFreedTwice, address);
  solo.heap.put_back(head, static_cast<Block*>(address));
  if (guarded) lock.unlock();
}

size_t give_back() {
  if (is_locked()) {
    os::Guard guard(lock);
    solo.heap.flush(parked);
  } else {
    solo.heap.flush(solo.heap.free);
  }
  return purge_all();
}

Found look_up(const void* block) { return find(block); }
bool resize(Granule* span, size_t bytes) { return resize_span_in_place(span, bytes); }
HeapCounts count_heaps() { return {.heaps = 1, .refills = solo.heap.refills.value()}; }

void start() {
  if (!libc_allocates_here() && !is_locked()) close_fast_paths();
}

void hold_locks_for_fork() { os::fork.hold(lock); }
void after_fork_in_child() {}

}  // namespace annex::front
