// Hardened: see hardened.h.
#include "front/hardened.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/arena.h"
#include "core/block.h"
#include "core/die.h"
#include "core/runs.h"
#include "front/request.h"
#include "front/shared.h"
#include "harden/canary.h"
#include "harden/empty_blocks.h"
#include "harden/guarded_span.h"
#include "harden/live_blocks.h"
#include "harden/measures.h"
#include "harden/tags.h"
#include "os/fork.h"

namespace annex::front {

namespace {

using namespace harden;

constexpr size_t kMostBeside = kMaxSmall - kCanaryBytes;  // a small block's room

constexpr size_t kTinyBlock = 256;  // up to here without a call
constexpr size_t kTiny = kTinyBlock - kCanaryBytes;
constexpr size_t kLookedAt = 128;
constexpr size_t kLine = 64;

constexpr char kOtherSize[] = "a block deleted as one of another size:";
constexpr char kOtherAlignment[] = "a block deleted as one of another alignment:";

// Before the first arena is made.
void prepare() {
  if (__atomic_load_n(&commit_side_tables, __ATOMIC_RELAXED) != nullptr) return;
  __atomic_store_n(&commit_side_tables, &commit_states, __ATOMIC_RELAXED);
  os::enable_memory_tags();
}

// The slab in which an address lies, where it is one of one granule in the first arena; else nullptr, which says
// nothing.
[[gnu::always_inline]] inline Granule* slab_at(const void* address) {
  const size_t index = (reinterpret_cast<uintptr_t>(address) - primary.reach) >> kGranuleShift;
  if (index >= kReach >> kGranuleShift) [[unlikely]]
    return nullptr;
  Granule* const granule = reinterpret_cast<Granule*>(primary.reach) + index;
  return granule->kind == Kind::kSlab ? granule : nullptr;
}

typedef uint64_t Words __attribute__((vector_size(16), may_alias));

// `bytes`, a multiple of 16, from `block` on.
[[gnu::always_inline]] inline bool is_zero(const void* block, size_t bytes) {
  Words any = {};
  for (size_t at = 0; at < bytes; at += sizeof(Words)) {
    any |= *reinterpret_cast<const Words*>(static_cast<const char*>(block) + at);
  }
  return (any[0] | any[1]) == 0;
}
[[gnu::always_inline]] inline void set_zero(void* block, size_t bytes) {
  for (size_t at = 0; at < bytes; at += sizeof(Words)) {
    *reinterpret_cast<Words*>(static_cast<char*>(block) + at) = Words{};
    asm("" ::: "memory");  // or a compiler makes an instruction of the loop that is slow to start
  }
}

// --- blocks that are handed out --------------------------------------------------------------------------------------

// Whether a block is as it was when it was freed: in its first 128 bytes, and in a larger one in 64 others by chance.
// The words that were just looked at and cleared are left out: reading them now would wait for that.
[[gnu::noinline]] bool is_larger_untouched(const void* block, size_t bytes) {
  const uint32_t places = static_cast<uint32_t>((bytes - kLookedAt) / kLine) + 1;
  const uint32_t place = thread_heap == &no_heap ? 0 : thread_heap->held.below(places);
  const char* const line = static_cast<const char*>(block) + kLookedAt + place * kLine;
  const size_t left = static_cast<size_t>(static_cast<const char*>(block) + bytes - line);
  return is_zero(static_cast<const Block*>(block) + 1, kLookedAt - sizeof(Block)) &&
         is_zero(line, std::min(left, kLine));
}
[[gnu::always_inline]] inline bool is_untouched(const void* block, size_t bytes) {
  return bytes <= kLookedAt ? is_zero(static_cast<const Block*>(block) + 1, bytes - sizeof(Block))
                            : is_larger_untouched(block, bytes);
}

// A free block becomes one of so many bytes.
[[gnu::always_inline]] inline void* hand_out(void* block, uint8_t* state, SizeClass c, size_t bytes) {
  static_cast<Block*>(block)->next = nullptr;
  if (load(state) != 0) [[unlikely]]
    die(kFreedTwice, block);
  if (kChecksZero && !is_untouched(block, block_size(c))) [[unlikely]]
    die(kWrittenAfterFree, block);
  const uint8_t now = state_for(c, bytes);
  store(state, now);
  set_canary(block, room_in(c, now));
  return tagged(block, block_size(c));
}

[[gnu::noinline]] void* allocate_in(SizeClass c, size_t bytes) {
  prepare();
  void* block = Shared::allocate(block_size(c));
  if (block == nullptr) [[unlikely]] {
    // What waits may be as much as is wanted.
    if (thread_heap != &no_heap) thread_heap->held.flush();
    if (let_go_of_spans()) block = Shared::allocate(block_size(c));
  }
  return block == nullptr ? nullptr : hand_out(block, state_of(block), c, bytes);
}

[[gnu::noinline]] void* allocate_small(size_t bytes) {
  const SizeClass c = class_of(bytes + kCanaryBytes);
  Block** const list = &thread_heap->free[c];
  Block* const first = *list;
  if (first == nullptr || slab_at(first) == nullptr) [[unlikely]]
    return allocate_in(c, bytes);
  return hand_out(pop(list), state_in_first(first), c, bytes);
}

// The same for up to kTiny bytes, not 0, whose state needs no rounding and whose slabs are of one granule.
[[gnu::always_inline]] inline void* allocate_tiny(size_t bytes) {
  const SizeClass c = class_of_tiny(bytes + kCanaryBytes);
  Block** const list = &thread_heap->free[c];
  Block* const block = *list;
  // One comparison for both: no list, and a block in another arena.
  if ((reinterpret_cast<uintptr_t>(block) - primary.reach) >= kReach) [[unlikely]]
    return allocate_in(c, bytes);
  *list = next_of(block);
  unmarked(block);
  block->next = nullptr;
  uint8_t* const state = state_in_first(block);
  if (load(state) != 0) [[unlikely]]
    die(kFreedTwice, block);
  const size_t size = block_size(c);
  if (kChecksZero && !is_zero(block + 1, size - sizeof(Block))) [[unlikely]]
    die(kWrittenAfterFree, block);
  store(state, static_cast<uint8_t>(size - kCanaryBytes - bytes + 1));
  set_canary(block, bytes);
  return tagged(block, size);
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
  void* block = set_up() ? allocate_empty() : nullptr;
  return block != nullptr ? block : allocate_small(0);
}

[[gnu::noinline]] void* allocate_other(size_t bytes) {
  if (bytes == 0) return allocate_none();
  return bytes <= kMostBeside ? allocate_small(bytes) : allocate_big(bytes, kMinAlignment);
}

// --- blocks that come back -------------------------------------------------------------------------------------------

// The slab or span of a block, or the process ends.
Granule* find_or_die(const void* block) {
  const char* problem = nullptr;
  Granule* head = find_block(block, &problem);
  if (head == nullptr) [[unlikely]]
    die(problem, block);
  return head;
}

[[noreturn, gnu::cold, gnu::noinline]] void die_of_wrong_free(const void* block) {
  find_or_die(block);
  die(kFreedTwice, block);
}

// A block leaves the quarantine, and goes the shared flavour's way.
void leave(void* block) {
  if (load(state_of(block)) != 0) [[unlikely]]
    die(kFreedTwice, block);
  if (!is_zero(block, sizeof(Block))) [[unlikely]]
    die(is_marked(0, block) ? kFreedTwice : kWrittenAfterFree, block);
  Shared::release(block);
}

// The same, where it is the thread's own and lies in a slab of one granule in the first arena. That it is a block is
// known; one that is in use again, or in a list, is not all zeros, or is found when it is handed out.
[[gnu::always_inline]] inline void leave_quickly(void* address) {
  Granule* const slab = slab_at(address);
  if (slab == nullptr || owner_in(slab->key) != thread_number) [[unlikely]]
    return leave(address);
  Block* const block = static_cast<Block*>(address);
  if (!is_zero(block, sizeof(Block))) [[unlikely]]
    return leave(block);
  set_next(block, slab->free);
  mark_free(slab->key, block);
  slab->free = block;
  if (--slab->countdown == 0) [[unlikely]]
    thread_heap->settle(slab, slab->used_after);
}

// The program's room in a block of a slab of that class; the process ends where it is not in use.
[[gnu::always_inline]] inline size_t live_room(SizeClass c, const void* block, const uint8_t* state) {
  const uint8_t known = load(state);
  if (known == 0 || reinterpret_cast<uintptr_t>(block) % kMinAlignment != 0) [[unlikely]]
    die_of_wrong_free(block);
  return room_in(c, known);
}

// A block of a slab of that class, all zeros, is no longer in use.
[[gnu::always_inline]] inline void hold_back(SizeClass c, void* block) {
  if (!kHasQuarantine) return leave_quickly(block);
  if (thread_heap == &no_heap) [[unlikely]]
    return leave(block);
  void* const leaves = thread_heap->held.exchange(block, block_size(c));
  if (leaves != nullptr) leave_quickly(leaves);
}

[[gnu::noinline]] void release_larger(SizeClass c, void* block) {
  memset(block, 0, kZeroes ? block_size(c) : sizeof(Block));
  hold_back(c, block);
}

// A block that is in use and has so much room comes back; `pointer` is the program's.
[[gnu::always_inline]] inline void release_small(SizeClass c, const void* pointer, void* block, uint8_t* state,
                                                 size_t room) {
  take_tag(pointer, block, block_size(c));
  if (!canary_stands(block, room)) [[unlikely]]
    die(kWrittenBehind, block);
  store(state, 0);
  if (block_size(c) > kTinyBlock) return release_larger(c, block);
  set_zero(block, kZeroes ? block_size(c) : sizeof(Block));
  hold_back(c, block);
}

// Whether a block with so much room was asked for with so many bytes.
bool same_size(SizeClass c, size_t room, size_t bytes) {
  return bytes + kCanaryBytes <= block_size(c) && room_in(c, state_for(c, bytes)) == room;
}

// `bytes` as in release_checked.
[[gnu::noinline]] void release_other(void* pointer, size_t bytes) {
  if (pointer == nullptr) return;
  void* const block = os::without_tag(pointer);
  if (is_empty_block(block)) return free_empty(block);
  Granule* head = find_or_die(block);
  if (head->kind == Kind::kSpan) {
    check_tag(pointer, block);
    if (bytes != 0 && bytes != room_of_span(head)) die(kOtherSize, block);
    return harden::free_span(head);
  }
  const SizeClass c = head->size_class;
  uint8_t* const state = state_of(block);
  const size_t room = live_room(c, block, state);
  if (bytes != 0 && !same_size(c, room, bytes)) die(kOtherSize, block);
  release_small(c, pointer, block, state, room);
}

}  // namespace

void FreedBlocks::flush() { Quarantine::flush(leave); }

void* Hardened::allocate_slow(size_t bytes) noexcept {
  return bytes - 1 < kTiny ? allocate_tiny(bytes) : allocate_other(bytes);
}

// Every block is all zeros, but for the canary; not all of a larger one has been looked at.
void* Hardened::allocate_zeroed(size_t bytes) {
  void* block = allocate_slow(bytes);
  const bool known = kZeroes && (bytes <= kTiny || bytes > kZeroedSpan);
  return block == nullptr || known ? block : memset(block, 0, bytes);
}

void* Hardened::allocate_aligned(size_t alignment, size_t bytes) {
  if (bytes > kMaxRequest) return out_of_memory();
  const SizeClass c = aligned_class(alignment, bytes + kCanaryBytes);
  if (c < kClasses) return allocate_in(c, bytes);
  return allocate_big(bytes > 0 ? bytes : 1, alignment);
}

void Hardened::release(void* pointer) noexcept {
  void* const block = os::without_tag(pointer);
  Granule* const slab = slab_at(block);
  if (slab == nullptr) [[unlikely]]
    return release_other(pointer, 0);
  uint8_t* const state = state_in_first(block);
  release_small(slab->size_class, pointer, block, state, live_room(slab->size_class, block, state));
}

void Hardened::release_checked(void* pointer, size_t bytes, size_t alignment) noexcept {
  void* const block = os::without_tag(pointer);
  if (alignment > 0 && reinterpret_cast<uintptr_t>(block) % alignment != 0) [[unlikely]]
    die(kOtherAlignment, block);
  Granule* const slab = slab_at(block);
  if (slab == nullptr) [[unlikely]]
    return release_other(pointer, bytes);
  const SizeClass c = slab->size_class;
  uint8_t* const state = state_in_first(block);
  const size_t room = live_room(c, block, state);
  if (room != bytes && bytes != 0 && !same_size(c, room, bytes)) [[unlikely]]
    die(kOtherSize, block);
  release_small(c, pointer, block, state, room);
}

Found Hardened::look_up(const void* pointer) {
  const void* const block = os::without_tag(pointer);
  if (is_empty_block(block)) {
    check_empty(block);
    return {0, nullptr};
  }
  Granule* head = find_or_die(block);
  check_tag(pointer, block);
  if (head->kind == Kind::kSpan) return {room_of_span(head), head};
  return {live_room(head->size_class, block, state_of(block)), nullptr};
}

bool Hardened::resize(Granule* span, size_t bytes) { return harden::resize_span(span, bytes); }
void* Hardened::move(Granule*, size_t) { return nullptr; }

bool Hardened::refit(void* block, size_t bytes) {
  if (os::memory_tags || bytes == 0 || bytes > kMostBeside || is_empty_block(block)) return false;
  Granule* head = find_or_die(block);
  if (head->kind != Kind::kSlab) return false;
  const SizeClass c = head->size_class;
  const size_t most = block_size(c) - kCanaryBytes;
  if (bytes > most || bytes < most / 2) return false;
  uint8_t* const state = state_of(block);
  const size_t room = live_room(c, block, state);
  if (!canary_stands(block, room)) die(kWrittenBehind, block);
  memset(static_cast<char*>(block) + room, 0, kCanaryBytes);
  const uint8_t now = state_for(c, bytes);
  store(state, now);
  set_canary(block, room_in(c, now));
  return true;
}

size_t Hardened::give_back() {
  if (thread_heap != &no_heap) thread_heap->held.flush();
  let_go_of_spans();
  const size_t bytes = Shared::give_back();
  purge_states();
  return bytes;
}

HeapCounts Hardened::count_heaps() { return Shared::count_heaps(); }

void Hardened::start() {
  prepare();
  Shared::start();
}

void Hardened::hold_locks_for_fork() {
  Shared::hold_locks_for_fork();
  os::fork.hold(waiting_spans_lock);
}
void Hardened::after_fork_in_child() { Shared::after_fork_in_child(); }

}  // namespace annex::front
