// Solo: see solo.h.
#include "front/solo.h"

#include <sys/single_threaded.h>

#include <cstdlib>
#include <cstring>

#include "core/block.h"
#include "core/span.h"
#include "front/request.h"
#include "front/shared.h"
#include "os/libc_version.h"
#include "os/message.h"
#include "os/options.h"
#include "pages/page_heap.h"
#include "pages/purger.h"
#include "policy/policy.h"

// This library's calloc, where it has one that bears the C library's name (entry/malloc.cpp).
extern "C" [[gnu::weak, gnu::visibility("hidden")]] void* annex_own_calloc(size_t, size_t) noexcept;

namespace annex::front {

constinit Alone alone;

namespace {

// glibc 2.34 merged the thread library into libc and set the order that solo.h relies on. It is in no documentation,
// and to try it takes a thread: so it has been read in the sources (nptl/pthread_create.c, elf/dl-tls.c) up to 2.43.
bool order_is_known() {
  const unsigned minor = os::glibc_minor();
  return minor >= 34 && minor <= 43;
}

// Whether libc's own allocations, such as that of a new thread's TLS vector, come to this library. Told by the address
// and not by a call: who has a malloc of its own may not be ready for one before it begins (GNU Common Lisp is not). So
// a program with fixed addresses that takes calloc's is counted among those in which another stands before it.
bool libc_allocates_here() {
  void* (*volatile bound)(size_t, size_t) noexcept = calloc;
  return annex_own_calloc != nullptr && bound == annex_own_calloc;
}

void say_why_not(const char* why) {
  if (os::options.verbose) os::warn("solo goes the slower way that it has with several threads: ", why);
}

// The fast paths are closed before the shared flavour begins, which may allocate while it does.
void hand_over() {
  alone.start = kNowhere;
  alone.over = true;  // before there is another thread to read it
  if (alone.heap != nullptr) keep_first_heap();
}

// What is_alone() asks where nothing is set up yet, or a second thread may be there by now.
[[gnu::noinline]] bool becomes_alone() {
  if (alone.over) return false;
  if (alone.heap == nullptr) {
    if (!page_heap.set_up()) return false;
    if (order_is_known()) {
      alone.heap = claim_first_heap(alone.free);
    } else {
      say_why_not("a C library in which it can't be told when the second thread starts");
    }
  }
  if (alone.heap == nullptr || !__libc_single_threaded) {
    hand_over();
    return false;
  }
  alone.start = primary.start;
  return true;
}

// First on every slow path, and in calloc: whether the calling thread is the only one, and ready to allocate.
inline bool is_alone() {
  const bool was = alone.heap != nullptr && !alone.over;
  return (was && __libc_single_threaded) || becomes_alone();
}

void* pop_or_refill(SizeClass c) {
  Policy::MallocSteps::drop(c);
  if (alone.free[c] == nullptr) {
    Block* block = alone.heap->refill(c);
    if (block == nullptr) return out_of_memory();
    alone.free[c] = block;
  }
  return pop(&alone.free[c]);
}

void* allocate_small(SizeClass c) {
  void* block = pop_or_refill(c);
  start_wanted_purger();
  return block;
}

[[gnu::noinline]] void release_unless_over(void* address) {
  if (address == nullptr) return;
  if (!is_alone()) return Shared::release(address);
  Granule* const head = live_block_or_die(address);
  if (Span* span = as_span(head)) return free_span(span);
  alone.heap->put_back(static_cast<Slab*>(head), static_cast<Block*>(address));
}

}  // namespace

void* Solo::allocate_slow(size_t bytes) noexcept {
  if (alone.over) return Shared::allocate(bytes);
  if (bytes <= kMaxSmall) {
    const SizeClass c = class_of(bytes);
    Policy::MallocSteps::drop(c);
    Block** const list = &alone.free[c];
    if (*list != nullptr) return pop(list);
    if (is_alone()) {
      Block* const block = alone.heap->take_freed(c);
      if (block == nullptr) return allocate_small(c);
      *list = next_of(block);
      return unmarked(block);
    }
  }
  return Shared::allocate(bytes);
}

void* Solo::allocate_zeroed(size_t bytes) {
  if (!__libc_single_threaded) [[unlikely]] {
    is_alone();  // the moment that solo.h speaks of
    return Shared::allocate_zeroed(bytes);
  }
  if (bytes > kMaxSmall) return allocate_large_zeroed(bytes);
  void* block = allocate(bytes);
  return block == nullptr ? nullptr : memset(block, 0, bytes);
}

void* Solo::allocate_aligned(size_t alignment, size_t bytes) {
  const SizeClass c = aligned_class(alignment, bytes);
  return c < kClasses && is_alone() ? allocate_small(c) : Shared::allocate_aligned(alignment, bytes);
}

void Solo::release_slow(void* address) noexcept {
  return alone.over ? Shared::release(address) : release_unless_over(address);
}

size_t Solo::give_back(bool holes) {
  if (!is_alone()) return Shared::give_back(holes);
  alone.heap->flush();
  return page_heap.trim(holes ? alone.heap->make_holes({}) : 0);
}

void Solo::start() {
  if (libc_allocates_here() || !is_alone()) return;
  say_why_not("libc's own allocations don't come here, as where it is loaded late");
  hand_over();
}

}  // namespace annex::front
