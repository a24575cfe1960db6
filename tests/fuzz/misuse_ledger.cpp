// Correct use of the heap, and its books; see misuse_ledger.h.
#include "fuzz/misuse_ledger.h"

#include <algorithm>
#include <cstring>

#include "annex/annex.h"
#include "common/opaque.h"
#include "common/pattern.h"

namespace annex_test {
namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;

// So much of a block's start is written and summed up, and this much of its end.
constexpr std::size_t kStartBytes = 2 * kKiB;
constexpr std::size_t kEndBytes = 16;

std::size_t start_bytes(std::size_t bytes) { return std::min(bytes, kStartBytes); }
std::size_t end_bytes(std::size_t bytes) { return std::min(bytes - start_bytes(bytes), kEndBytes); }

std::uint64_t sum_of(const char* from, std::size_t bytes, std::uint64_t sum) {
  for (std::size_t at = 0; at < bytes; at += 8) {
    std::uint64_t word = 0;
    memcpy(&word, from + at, std::min<std::size_t>(8, bytes - at));
    sum = (sum ^ word) * 0x9E3779B97F4A7C15u;
    sum ^= sum >> 29;
  }
  return sum;
}

std::uint64_t sum_of(const char* block, std::size_t bytes) {
  const std::size_t end = end_bytes(bytes);
  return sum_of(block + bytes - end, end, sum_of(block, start_bytes(bytes), bytes));
}

// Small blocks most of all; spans, and now and then one whose pages realloc moves.
std::size_t draw_any(Random* random) {
  const std::size_t draw = random->below(1000);
  if (draw < 550) return random->between(0, 256);
  if (draw < 800) return random->between(257, 4 * kKiB);
  if (draw < 960) return random->between(4 * kKiB + 1, 32 * kKiB);
  if (draw < 997) return random->between(32 * kKiB + 1, 300 * kKiB);
  return random->between(300 * kKiB, 5 * kMiB);
}

}  // namespace

Appetite::Appetite(Random* random) {
  for (std::size_t& favourite : favourites) favourite = draw_any(random);
}

std::size_t Appetite::draw(Random* random) const {
  return random->chance(75) ? favourites[random->below(kFavourites)] : draw_any(random);
}

bool Ledger::holds(const void* start) const {
  return std::any_of(held_, held_ + held_count_, [start](const Held& block) { return block.start == start; });
}

bool Ledger::check(std::size_t index) const {
  const Held& block = held_[index];
  return sum_of(block.start, block.bytes) == block.sum;
}

// What a program may write into a block is anything. What looks like the heap's own words is the likeliest to confuse
// it: zeros, addresses of blocks, what another block holds, and what was there when the block was handed out.
std::uint64_t Ledger::write(Random* random, char* block, std::size_t bytes) const {
  enum { kRandom, kZeros, kAddresses, kCopy, kNothing, kWays };
  const std::size_t way = random->below(kWays);
  const Held* source = held_count_ > 0 ? &held_[random->below(held_count_)] : nullptr;
  const auto word_at = [&](std::size_t at) {
    std::uint64_t word = 0;
    if (way == kRandom) word = random->next();
    if (source == nullptr) return word;
    if (way == kAddresses) word = reinterpret_cast<std::uintptr_t>(held_[random->below(held_count_)].start);
    if (way == kCopy && at + 8 <= start_bytes(source->bytes)) memcpy(&word, source->start + at, 8);
    return word;
  };
  const auto write_words = [&](char* to, std::size_t count) {
    for (std::size_t at = 0; at < count; at += 8) {
      const std::uint64_t word = word_at(at);
      memcpy(to + at, &word, std::min<std::size_t>(8, count - at));
    }
  };
  if (way != kNothing) {
    write_words(block, start_bytes(bytes));
    write_words(block + bytes - end_bytes(bytes), end_bytes(bytes));
  }
  return sum_of(block, bytes);
}

bool Ledger::fail(const char* problem) {
  problem_ = problem;
  return false;
}

bool Ledger::admit(Random* random, void* block, std::size_t bytes) {
  if (block == nullptr) return fail("there was no memory");
  // Sometimes all that there is, which the program may use too.
  if (random->chance(30)) bytes = annex_usable_size(block);
  char* const start = static_cast<char*>(block);
  held_[held_count_] = {start, bytes, write(random, start, bytes)};
  ++held_count_;
  held_bytes_ += bytes;
  return true;
}

Held Ledger::take_out(std::size_t index) {
  const Held block = held_[index];
  held_[index] = held_[--held_count_];
  held_bytes_ -= block.bytes;
  return block;
}

bool Ledger::allocate(Random* random, std::size_t bytes) {
  if (!has_room_for(bytes)) return true;
  const std::size_t draw = random->below(10);
  if (draw == 0) {
    char* block = static_cast<char*>(opaque(annex_calloc(1, bytes)));
    if (block != nullptr && first_nonzero(block, start_bytes(bytes)) != kNoMismatch)
      return fail("calloc left something");
    return admit(random, block, bytes);
  }
  if (draw == 1) {
    const std::size_t alignment = std::size_t{16} << random->below(random->chance(10) ? 14 : 9);
    return admit(random, opaque(annex_aligned_alloc(alignment, bytes)), bytes);
  }
  return admit(random, opaque(annex_malloc(bytes)), bytes);
}

const Held* Ledger::allocate_plainly(Random* random, std::size_t bytes) {
  if (!has_room_for(bytes) || !admit(random, opaque(annex_malloc(bytes)), bytes)) return nullptr;
  return &held_[held_count_ - 1];
}

bool Ledger::release(std::size_t index) {
  if (!check(index)) return fail("a block lost what was in it");
  const Held block = take_out(index);
  annex_free(block.start);
  note_freed(block, false);
  return true;
}

bool Ledger::reallocate(Random* random, std::size_t index, std::size_t bytes) {
  if (!has_room_for(bytes)) return true;
  if (!check(index)) return fail("a block lost what was in it");
  const Held before = take_out(index);
  const std::size_t kept = start_bytes(std::min(before.bytes, bytes));
  const std::uint64_t sum = sum_of(before.start, kept, 0);
  char* const after = static_cast<char*>(opaque(annex_realloc(before.start, bytes)));
  if (after != before.start) note_freed(before, true);
  if (bytes == 0) return after == nullptr || fail("realloc to nothing returned a block");
  if (after != nullptr && sum_of(after, kept, 0) != sum) return fail("realloc lost what was in the block");
  return admit(random, after, bytes);
}

bool Ledger::step(Random* random, const Appetite& appetite, unsigned growth) {
  if (held_count_ == 0 || random->chance(growth)) return allocate(random, appetite.draw(random));
  const std::size_t draw = random->below(100);
  std::size_t index = random->below(held_count_);
  if (draw < 30) index = held_count_ - 1 - random->below(std::min<std::size_t>(held_count_, 8));  // a young one
  if (draw < 85) return release(index);
  if (draw < 95) return reallocate(random, index, appetite.draw(random));
  return check(index) || fail("a block lost what was in it");
}

void Ledger::pass_to(Ledger* other, Random* random, std::size_t count) {
  for (; count > 0 && held_count_ > 0 && other->held_count_ < kMostHeld; --count) {
    const Held block = take_out(random->below(held_count_));
    other->held_[other->held_count_++] = block;
    other->held_bytes_ += block.bytes;
  }
}

}  // namespace annex_test
