// Arenas: see arena.h.
#include "pages/arena.h"

#include <algorithm>

#include "pages/commitment.h"

namespace annex {

constinit Primary primary = {kNowhere, 0, nullptr};
[[gnu::section(".bss.arenas")]] constinit Arena arenas[kMaxArenas];  // last of all: layout.ld
constinit uint32_t arena_count = 0;
constinit CommitSideTables* commit_side_tables = nullptr;
constinit PurgeSideTables* purge_side_tables = nullptr;

namespace {

constexpr size_t kMetadataStep = 64 * 1024;  // committed at a time: that of 32 MiB

}  // namespace

uint8_t Arena::number() const { return static_cast<uint8_t>(this - arenas); }

// The first metadata is mapped at once: where another has mapped something, the next room is tried.
bool Arena::begin(size_t bytes, Books* books) {
  constexpr int kTries = 8;
  const bool first = this == &arenas[0];
  bytes_ = first ? std::min(bytes, kMostOfPrimary) : bytes;
  const size_t below = first ? kMetadataBelow : round_up(bytes_ / kGranule * sizeof(Granule), kHugePage);
  for (int i = 0; i < kTries; ++i) {
    blocked_ = false;
    const size_t room_below = round_up(below, kHugePage);
    char* const room = kByChance ? os::room_anywhere(bytes_, kHugePage) : os::room(room_below + bytes_, kHugePage);
    char* const metadata = kByChance ? os::room_anywhere(below, os::page_size()) : room + room_below - below;
    if (room == nullptr || metadata == nullptr) return false;
    start_ = kByChance ? room : room + room_below;
    metadata_ = reinterpret_cast<Granule*>(metadata);
    if (commit_metadata(1, books)) return true;
    if (!blocked_) return false;
  }
  return false;
}

bool Arena::succeeded(os::MapResult result) {
  if (result == os::MapResult::kTaken) blocked_ = true;
  return result == os::MapResult::kMapped;
}

bool Arena::map(char* start, size_t bytes, Books* books) {
  const os::MapResult result = os::map_at(start, bytes);
  if (!succeeded(result)) {
    // Not for a single block that asks for the impossible.
    if (result == os::MapResult::kNoMemory && bytes <= commitment::kLargestStep) books->addresses_are_scarce = true;
    return false;
  }
  books->committed += bytes;
  return true;
}

bool Arena::commit_metadata(uint32_t frontier, Books* books) {
  const size_t all = bytes_ / kGranule * sizeof(Granule);
  const size_t wanted = std::min(round_up(frontier * sizeof(Granule), kMetadataStep), round_up(all, os::page_size()));
  if (wanted <= metadata_committed_) return true;
  const size_t more = wanted - metadata_committed_;
  if (!map(reinterpret_cast<char*>(metadata_) + metadata_committed_, more, books)) return false;
  books->metadata += more;
  if (this == &arenas[0]) {
    if (metadata_committed_ == 0) {
      primary.start = reinterpret_cast<uintptr_t>(start_);
      primary.metadata = metadata_;
    }
    __atomic_store_n(&primary.granules, wanted / sizeof(Granule), __ATOMIC_RELEASE);
  }
  __atomic_store_n(&metadata_committed_, wanted, __ATOMIC_RELAXED);
  return true;
}

// Makes memory and metadata usable up to a new frontier.
bool Arena::commit_to(uint32_t frontier, Books* books) {
  const uint32_t all = static_cast<uint32_t>(bytes_ / kGranule);
  if (frontier > all || blocked_ || !commit_metadata(frontier, books)) return false;
  if (commit_side_tables != nullptr && !succeeded(commit_side_tables(*this, frontier))) return false;
  if (frontier <= committed_) return true;
  const size_t step = commitment::step(*books, size_t{committed_} * kGranule) / kGranule;
  uint32_t target = static_cast<uint32_t>(std::min<size_t>(std::max<size_t>(frontier, committed_ + step), all));
  char* const start = start_ + size_t{committed_} * kGranule;
  if (!map(start, size_t{target - committed_} * kGranule, books)) {
    target = frontier;  // perhaps just what is needed can still be had
    blocked_ = false;
    if (!map(start, size_t{target - committed_} * kGranule, books)) return false;
  }
  committed_ = target;
  return true;
}

Granule* Arena::granule_checked(const void* address) const {
  Granule* granule = granule_at(address);
  const size_t committed = __atomic_load_n(&metadata_committed_, __ATOMIC_RELAXED);
  return reinterpret_cast<char*>(granule + 1) <= reinterpret_cast<char*>(metadata_) + committed ? granule : nullptr;
}

bool Arena::advance(uint32_t frontier, Books* books) {
  if (!commit_to(frontier, books)) return false;
  frontier_ = frontier;
  return true;
}

bool Arena::retreat(uint32_t frontier, bool unmapped, Books* books) {
  if (unmapped && !uncommit_rest(books)) return false;
  frontier_ = frontier;
  if (unmapped) committed_ = frontier;
  return true;
}

bool Arena::uncommit_rest(Books* books) {
  if (committed_ == frontier_) return true;
  const size_t bytes = size_t{committed_ - frontier_} * kGranule;
  if (!unmap(start_ + size_t{frontier_} * kGranule, bytes, books)) return false;
  committed_ = frontier_;
  return true;
}

void Arena::note_unmapped(const char* start, size_t bytes, Books* books) {
  books->committed -= bytes;
  if (huge_noted_ == 0) return;
  const size_t from = static_cast<size_t>(start - start_);
  set_huge(from / kGranule, round_up(from + bytes, kGranule) / kGranule, false, books);
}

bool Arena::unmap(char* start, size_t bytes, Books* books) {
  if (!os::unmap_at(start, bytes)) return false;
  note_unmapped(start, bytes, books);
  return true;
}

// --- of all arenas ---------------------------------------------------------------------------------------------------

Arena* add_arena(size_t bytes, Books* books) {
  if (arena_count == kMaxArenas || !arenas[arena_count].begin(bytes, books)) return nullptr;
  __atomic_store_n(&arena_count, arena_count + 1, __ATOMIC_RELEASE);
  return &arenas[arena_count - 1];
}

Arena* arena_of(const void* address) {
  const uint32_t count = __atomic_load_n(&arena_count, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < count; ++i) {
    if (arenas[i].contains(address)) return &arenas[i];
  }
  return nullptr;
}

Granule* granule_of(const void* address) {
  const Arena* arena = arena_of(address);
  return arena == nullptr ? nullptr : arena->granule_checked(address);
}

}  // namespace annex
