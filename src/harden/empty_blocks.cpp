// Blocks of no bytes: see empty_blocks.h.
#include "harden/empty_blocks.h"

#include <atomic>
#include <cstdint>

#include "core/block.h"
#include "core/die.h"
#include "harden/live_blocks.h"
#include "os/lock.h"
#include "os/pages.h"
#include "pages/arena.h"
#include "pages/page_heap.h"

namespace annex::harden {

namespace {

constexpr uint32_t kGranules = 16;
constexpr size_t kBytes = kGranules * kGranule;
constexpr uint32_t kMost = kBytes / kMinAlignment;
constexpr uint32_t kLook = 64;  // places in turn, for one that is not in use

constinit std::atomic<char*> place = nullptr;  // of all of them, once it is there
constinit std::atomic<uint32_t> turn = 0;

char* make_place() {
  const Run run = page_heap.take({.granules = kGranules, .use = Use::kSpan, .bytes = kBytes});
  if (run.head == nullptr) return nullptr;
  Span* const span = static_cast<Span*>(run.head);
  char* const made = start_of(span);
  if (!run.clean) os::purge(made, kBytes);  // nobody will read it
  os::forbid(made, kBytes);
  char* there = nullptr;
  if (place.compare_exchange_strong(there, made, std::memory_order_acq_rel)) {
    std::atomic_ref<Kind>(span->kind).store(Kind::kNoBytes, std::memory_order_relaxed);
    return made;
  }
  if (!os::commit(made, kBytes)) return there;  // and it stays out of use
  if (run.clean) {
    page_heap.give_clean_span(span);
  } else {
    page_heap.give_span(span);
  }
  return there;
}

void count(ptrdiff_t change) {
  Span* const span = static_cast<Span*>(granule_of(place.load(std::memory_order_relaxed)));
  std::atomic_ref<size_t>(span->asked).fetch_add(static_cast<size_t>(change), std::memory_order_relaxed);
}

std::atomic_ref<uint8_t> state(const void* block) { return std::atomic_ref<uint8_t>(*tiny_state_of(block)); }

}  // namespace

void* allocate_empty() {
  char* start = place.load(std::memory_order_acquire);
  if (start == nullptr) start = make_place();
  if (start == nullptr) return nullptr;
  for (uint32_t i = 0; i < kLook; ++i) {
    char* block = start + size_t{turn.fetch_add(1, std::memory_order_relaxed) % kMost} * kMinAlignment;
    if (state(block).exchange(1, std::memory_order_relaxed) != 0) continue;
    count(1);
    return block;
  }
  return nullptr;
}

bool is_empty_block(const void* address) {
  const char* start = place.load(std::memory_order_acquire);
  return start != nullptr && static_cast<size_t>(static_cast<const char*>(address) - start) < kBytes;
}

void check_empty(const void* block) {
  if (reinterpret_cast<uintptr_t>(block) % kMinAlignment != 0) die_at(kIntoABlock, block);
  if (state(block).load(std::memory_order_relaxed) == 0) die_at(kFreedTwice, block);
}

void free_empty(void* block) {
  check_empty(block);
  if (state(block).exchange(0, std::memory_order_relaxed) == 0) die_at(kFreedTwice, block);
  count(-1);
}

}  // namespace annex::harden
