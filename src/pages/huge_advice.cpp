// For which granules of an arena huge pages are asked: see arena.h. Most processes have none.
#include <algorithm>
#include <bit>
#include <cstring>

#include "os/pages.h"
#include "pages/arena.h"

namespace annex {

namespace {

// The bits of granules, and behind them those of pieces of 2 MiB.
constexpr size_t kGranulesPerByte = 8;
size_t with_pieces(size_t bytes) { return bytes + round_up<size_t>(bytes / kGranulesPerHugePage, os::page_size()); }

}  // namespace

// Room for the bits of all granules before the frontier to come; false where there is none.
bool Arena::note_huge_up_to(uint32_t end, Books* books) {
  if (end <= huge_noted_) return true;
  const size_t before = huge_noted_ / kGranulesPerByte;
  const size_t bytes = round_up(std::max<size_t>(2 * before, end / kGranulesPerByte + 1), os::page_size());
  char* const words = static_cast<char*>(os::map(with_pieces(bytes)));
  if (words == nullptr) return false;
  if (huge_ != nullptr) {
    memcpy(words, huge_, before);
    memcpy(words + bytes, huge_ended_, before / kGranulesPerHugePage);
    os::unmap(huge_, with_pieces(before));
  }
  huge_ = reinterpret_cast<uint64_t*>(words);
  huge_ended_ = reinterpret_cast<uint64_t*>(words + bytes);
  huge_noted_ = static_cast<uint32_t>(bytes * kGranulesPerByte);
  books->committed += with_pieces(bytes) - with_pieces(before);
  books->metadata += with_pieces(bytes) - with_pieces(before);
  return true;
}

bool Arena::is_huge(size_t granule) const {
  return granule < huge_noted_ && (huge_[granule / 64] >> (granule % 64) & 1) != 0;
}

// The 2 MiB that begin with a granule are, or are not any more, of those for which huge pages have ended.
void Arena::set_huge_ended(size_t first, bool ended, Books* books) {
  const size_t piece = first / kGranulesPerHugePage;
  const uint64_t bit = uint64_t{1} << (piece % 64);
  uint64_t& word = huge_ended_[piece / 64];
  if (((word & bit) != 0) == ended) return;
  word ^= bit;
  if (ended) {
    ++books->huge_ended;
  } else {
    --books->huge_ended;
  }
}

void Arena::set_huge(size_t from, size_t to, bool huge, Books* books) {
  to = std::min<size_t>(to, huge_noted_);
  for (size_t at = from, next; at < to; at = next) {
    next = std::min(round_down<size_t>(at, 64) + 64, to);
    const uint64_t bits = ~uint64_t{0} >> (64 - (next - at)) << (at % 64);
    uint64_t& word = huge_[at / 64];
    const size_t before = static_cast<size_t>(std::popcount(word));
    word = huge ? word | bits : word & ~bits;
    books->huge += (static_cast<size_t>(std::popcount(word)) - before) * kGranule;  // or less, modulo 2^64
  }
}

// What can't be put down in the books is not asked for.
void Arena::advise_huge(const Granule* fresh, uint32_t granules, Books* books) {
  const uint32_t at = static_cast<uint32_t>(index_of(fresh));
  if (!note_huge_up_to(at + granules, books)) return;
  for (size_t i = round_up(at, kGranulesPerHugePage); i + kGranulesPerHugePage <= at + granules;
       i += kGranulesPerHugePage) {
    set_huge_ended(i, false, books);
  }
  os::advise_huge(start_of(fresh), size_t{granules} * kGranule, true);
  set_huge(at, at + granules, true, books);
}

bool Arena::end_huge(const Granule* granule, Books* books) {
  constexpr uint32_t kMost = 8192;
  const size_t from = index_of(huge_begin(granule));
  const size_t to = index_of(huge_end(granule));
  bool any = false;
  for (size_t i = from; i < to && !any; ++i) any = is_huge(i);
  if (!any || books->huge_ended == kMost) return false;
  set_huge_ended(from, true, books);
  os::advise_huge(start_ + from * kGranule, (to - from) * kGranule, false);
  set_huge(from, to, false, books);
  return true;
}

void Arena::note_moved(const Granule* from, const Granule* to, uint32_t granules, Books* books) {
  const Arena& source = arena_of_run(from);
  if (source.huge_noted_ == 0 && huge_noted_ == 0) return;
  const size_t source_at = source.index_of(from);
  const size_t at = index_of(to);
  for (uint32_t i = 0; i < granules; ++i) {
    const bool huge = source.is_huge(source_at + i);
    if (huge && !note_huge_up_to(static_cast<uint32_t>(at + i + 1), books)) return;
    set_huge(at + i, at + i + 1, huge, books);
  }
}

}  // namespace annex
