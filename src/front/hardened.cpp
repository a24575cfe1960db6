// Hardened: see hardened.h.
#include "front/hardened.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/block.h"
#include "core/die.h"
#include "front/request.h"
#include "front/shared.h"
#include "harden/canary.h"
#include "harden/empty_blocks.h"
#include "harden/guarded_span.h"
#include "harden/live_blocks.h"
#include "harden/tags.h"
#include "os/fork.h"
#include "os/options.h"
#include "pages/arena.h"
#include "pages/page_heap.h"

namespace annex::front {

namespace {

using namespace hardened;

constexpr size_t kLookedAt = 128;
constexpr size_t kLine = 64;

constexpr char kOtherSize[] = "a block deleted as one of another size:";
constexpr char kOtherAlignment[] = "a block deleted as one of another alignment:";

// Before the first arena is made.
void prepare() {
  if (__atomic_load_n(&commit_side_tables, __ATOMIC_RELAXED) != nullptr) return;
  __atomic_store_n(&purge_side_tables, &purge_states, __ATOMIC_RELAXED);
  __atomic_store_n(&commit_side_tables, &commit_states, __ATOMIC_RELAXED);
  os::enable_memory_tags();
}

[[gnu::always_inline]] inline Quarantine& started(Quarantine& held) {
  if (!held.has_started()) held.start();
  return held;
}

// --- blocks that are handed out --------------------------------------------------------------------------------------

// How much of a freed block of so many bytes is zeroed.
size_t zeroed_of(size_t bytes) {
  if (!Policy::kZeroing) return sizeof(Block);
  return os::options.zero_freed || bytes <= kTinyBlock ? bytes : kLookedAt;
}

// Whether a block is as it was when it was freed: in its first 128 bytes, and in a larger one in 64 others by chance.
[[gnu::always_inline]] inline bool is_larger_untouched(const void* block, size_t bytes) {
  const uint32_t places = static_cast<uint32_t>((bytes - kLookedAt + kLine - 1) / kLine);
  ThreadHeap* const heap = own_heap_now();
  const uint32_t place = heap != &no_heap ? started(heap->held).below(places) : 0;
  const char* const line = static_cast<const char*>(block) + kLookedAt + place * kLine;
  const size_t left = static_cast<size_t>(static_cast<const char*>(block) + bytes - line);
  return is_zero_behind_first(block, kLookedAt) && is_zero(line, std::min(left, kLine));
}
[[gnu::always_inline]] inline bool is_untouched(const void* block, size_t bytes) {
  const size_t zeroed = zeroed_of(bytes);
  return zeroed <= kLookedAt ? is_zero_behind_first(block, zeroed) : is_larger_untouched(block, bytes);
}

// A free block becomes one of so many bytes.
[[gnu::always_inline]] inline void* hand_out(void* block, uint8_t* state, SizeClass c, size_t bytes) {
  static_cast<Block*>(block)->next = nullptr;
  if (load(state) != 0) [[unlikely]]
    die_at(kFreedTwice, block);
  if (kChecksZero && !is_untouched(block, block_size(c))) [[unlikely]]
    die_at(kWrittenAfterFree, block);
  const uint8_t now = state_for(c, bytes);
  store(state, now);
  set_canary(block, room_in(c, now));
  return tagged(block, block_size(c));
}

// Where the thread has no list of the class yet, or one in another arena.
[[gnu::noinline]] void* allocate_in(SizeClass c, size_t bytes) {
  prepare();
  void* block = Shared::allocate(block_size(c));
  if (block == nullptr) [[unlikely]] {
    // What waits may be as much as is wanted.
    if (own_heap != &no_heap) own_heap->held.flush();
    if (let_go_of_spans()) block = Shared::allocate(block_size(c));
  }
  return block == nullptr ? nullptr : hand_out(block, state_of(c, block), c, bytes);
}

void* allocate_big(size_t bytes, size_t alignment) {
  prepare();
  if (bytes > kMaxRequest || alignment > kMaxRequest - bytes) return out_of_memory();
  void* block = harden::allocate_span(bytes, alignment);
  start_wanted_purger();
  return block != nullptr ? block : out_of_memory();
}

void* allocate_none() {
  prepare();
  void* block = page_heap.set_up() ? allocate_empty() : nullptr;
  return block != nullptr ? block : allocate_in(class_of(kCanaryBytes), 0);
}

// --- blocks that come back -------------------------------------------------------------------------------------------

// The slab or span of a block, or the process ends.
Granule* find_or_die(const void* block) {
  const auto [head, problem] = pointee_of(block);
  if (problem != nullptr) [[unlikely]]
    die(problem, block, head);
  return head;
}

[[noreturn, gnu::cold, gnu::noinline]] void die_of_wrong_free(const void* block) {
  die(kFreedTwice, block, find_or_die(block));
}

// The program's room in a block of a slab of that class; the process ends where it is not in use.
[[gnu::always_inline]] inline size_t live_room(SizeClass c, const void* block, const uint8_t* state) {
  const uint8_t known = load(state);
  if (known == 0 || reinterpret_cast<uintptr_t>(block) % kMinAlignment != 0) [[unlikely]]
    die_of_wrong_free(block);
  return room_in(c, known);
}

// Whether a block with so much room was asked for with so many bytes.
[[gnu::always_inline]] inline bool same_size(SizeClass c, size_t room, size_t bytes) {
  return bytes + kCanaryBytes <= block_size(c) && room_in(c, state_for(c, bytes)) == room;
}

// A block of a slab of that class comes back; `pointer` is the program's.
void release_small(SizeClass c, const void* pointer, void* block, uint8_t* state, size_t bytes) {
  const size_t room = live_room(c, block, state);
  if (room != bytes && bytes != 0 && !same_size(c, room, bytes)) [[unlikely]]
    die_at(kOtherSize, block);
  take_tag(pointer, block, block_size(c));
  if (!canary_stands(block, room)) [[unlikely]]
    die_at(kWrittenBehind, block);
  store(state, 0);
  memset(static_cast<char*>(block) + room, 0, kCanaryBytes);
  memset(block, 0, zeroed_of(block_size(c)));
  hold_back(c, block);
}

}  // namespace

void* hardened::hand_out_larger(Block** list, SizeClass c, size_t bytes) {
  Block* const first = *list;
  return hand_out(pop(list), larger_state_in_first(first), c, bytes);
}

void hardened::leave(void* block) {
  if (load(state_of(find_or_die(block)->size_class, block)) != 0) [[unlikely]]
    die_at(kFreedTwice, block);
  if (!is_zero(block, sizeof(Block))) [[unlikely]]
    die_at(is_marked(0, block) ? kFreedTwice : kWrittenAfterFree, block);
  Shared::release(block);
}

void hardened::hold_back(SizeClass c, void* block) {
  if (!Policy::kQuarantine) return leave_quickly(block);
  void* leaves = block;
  if (const OwnHeap self; self) leaves = started(self->held).exchange(block, block_size(c));
  if (leaves != nullptr) leave_quickly(leaves);
}

void hardened::release_in(Slab* slab, void* pointer, size_t bytes) {
  void* const block = os::without_tag(pointer);
  const SizeClass c = slab->size_class;
  const bool larger = block_size(c) > kTinyBlock;
  if (larger && !block_starts_at(slab, reinterpret_cast<uintptr_t>(block) % kGranule)) [[unlikely]]
    find_or_die(block);
  release_small(c, pointer, block, larger ? larger_state_in_first(block) : tiny_state_in_first(block), bytes);
}

// Each is taken out on a slow path: a fast one that takes them all out would not see that the heap has been taken.
void FreedBlocks::flush() {
  for_each_place([](void*& place) {
    void* block;
    {
      const OwnHeap self;
      block = std::exchange(place, nullptr);
    }
    if (block != nullptr) leave(block);
  });
}

void* Hardened::allocate_slow(size_t bytes) noexcept {
  if (bytes == 0) return allocate_none();
  return bytes <= kMostBeside ? allocate_in(class_of(bytes + kCanaryBytes), bytes) : allocate_big(bytes, kMinAlignment);
}

void Hardened::release_slow(void* pointer, size_t bytes) noexcept {
  if (pointer == nullptr) return;
  void* const block = os::without_tag(pointer);
  if (is_empty_block(block)) return free_empty(block);
  Granule* const head = find_or_die(block);
  if (Span* span = as_span(head)) {
    check_tag(pointer, block);
    if (bytes != 0 && bytes != room_of_span(span)) die(kOtherSize, block, span);
    return harden::free_span(span);
  }
  release_small(head->size_class, pointer, block, state_of(head->size_class, block), bytes);
}

void Hardened::check_alignment(const void* pointer, size_t alignment) noexcept {
  if (alignment > 0 && reinterpret_cast<uintptr_t>(os::without_tag(pointer)) % alignment != 0) [[unlikely]]
    die_at(kOtherAlignment, os::without_tag(pointer));
}

// Every block is all zeros, but for the canary; not all of a larger one has been looked at.
void* Hardened::allocate_zeroed(size_t bytes) {
  void* block = allocate(bytes);
  const bool known = Policy::kZeroing && (bytes <= kTiny || bytes > kZeroedSpan);
  return block == nullptr || known ? block : memset(block, 0, bytes);
}

void* Hardened::allocate_aligned(size_t alignment, size_t bytes) {
  if (bytes > kMaxRequest) return out_of_memory();
  const SizeClass c = aligned_class(alignment, bytes + kCanaryBytes);
  if (c < kClasses) return allocate_in(c, bytes);
  return allocate_big(bytes > 0 ? bytes : 1, alignment);
}

Found Hardened::look_up(const void* pointer) {
  const void* const block = os::without_tag(pointer);
  if (is_empty_block(block)) {
    check_empty(block);
    return {0, nullptr};
  }
  Granule* const head = find_or_die(block);
  check_tag(pointer, block);
  if (Span* span = as_span(head)) return {room_of_span(span), span};
  return {live_room(head->size_class, block, state_of(head->size_class, block)), nullptr};
}

bool Hardened::resize(Span* span, size_t bytes) { return harden::resize_span(span, bytes); }
void* Hardened::move(Span*, size_t) { return nullptr; }

bool Hardened::refit(void* block, size_t bytes) {
  if (os::memory_tags || bytes == 0 || bytes > kMostBeside || is_empty_block(block)) return false;
  Granule* head = find_or_die(block);
  if (head->kind != Kind::kSlab) return false;
  const SizeClass c = head->size_class;
  const size_t most = block_size(c) - kCanaryBytes;
  if (bytes > most || bytes < most / 2) return false;
  uint8_t* const state = state_of(c, block);
  const size_t room = live_room(c, block, state);
  if (!canary_stands(block, room)) die_at(kWrittenBehind, block);
  memset(static_cast<char*>(block) + room, 0, kCanaryBytes);
  const uint8_t now = state_for(c, bytes);
  store(state, now);
  set_canary(block, room_in(c, now));
  return true;
}

size_t Hardened::give_back(bool holes) {
  if (own_heap != &no_heap) own_heap->held.flush();
  let_go_of_spans();
  return Shared::give_back(holes);
}

[[gnu::cold]] bool Hardened::is_free_block(const Slab* slab, const void* block) {
  return load(state_of(slab->size_class, block)) == 0;
}

void Hardened::start() {
  prepare();
  Shared::start();
}

void Hardened::hold_locks_for_fork() {
  Shared::hold_locks_for_fork();
  os::fork.hold(waiting_spans_lock);
}

}  // namespace annex::front
