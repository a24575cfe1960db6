// Balanced commitment: see commitment.h, where the decisions stand as formulas.
#include "pages/commitment.h"

#include <sys/single_threaded.h>

#include <algorithm>

#include "os/options.h"

namespace annex::commitment {

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kSmallestStep = kMiB;
constexpr size_t kLeastSlack = kMiB / 4;
// So much taken by slabs says something; and so much is enough, also where it is spans that need fresh memory.
constexpr ptrdiff_t kSample = kMiB;
constexpr ptrdiff_t kLongSample = 4 * kMiB;
constexpr size_t kLargeAlone = 4 * kMiB;  // a heap of one thread, touched
constexpr size_t kLarge = 16 * kMiB;      // of several

size_t touched(const Books& books) { return books.touched.load(std::memory_order_relaxed); }

// What may be dirty although the heap grows.
size_t slack(const Books& books) { return std::max(kLeastSlack, touched(books) / 8); }

// A large heap of one thread goes on as it did of late. Another thread may begin at any time, with a slab for each
// class that it uses, most of them never filled: so with several, what all have taken counts as well; and in a small
// heap, where a part of a huge page is much.
bool proved_to_grow(const Books& books) {
  const size_t all = touched(books);
  if (all < kProofOfGrowth || !books.slabs_fill) return false;
  const bool alone = __libc_single_threaded != 0;
  if (all < (alone ? kLargeAlone : kLarge)) return all >= books.live / 4 * 3;
  return alone || all >= books.live / 3 * 2;
}

bool spans_are_filled(const Books& books) { return books.filled && touched(books) >= kProofOfGrowth; }

}  // namespace

void look_at_growth(Books* books, bool for_slab) {
  const size_t of_slabs = books->live - books->spans;
  const size_t touched_of_slabs = touched(*books) - books->spans;
  const auto taken = static_cast<ptrdiff_t>(of_slabs - books->slabs_then);
  const auto filled = static_cast<ptrdiff_t>(touched_of_slabs - books->touched_then);
  if (taken >= 0) {
    const bool first = books->slabs_then == 0;
    if (taken < kSample && !first) return;
    books->slabs_fill = filled >= taken / 4 * 3;
    if (taken < kLongSample && !for_slab) return;
  }
  books->slabs_then = of_slabs;
  books->touched_then = touched_of_slabs;
}

size_t step(const Books& books, size_t committed) {
  return books.addresses_are_scarce ? kSmallestStep : std::clamp(committed / 4, kSmallestStep, kLargestStep);
}

bool slabs_want_huge_pages(const Books& books) {
  if (os::options.huge_pages != os::HugePages::kAuto) return os::options.huge_pages == os::HugePages::kAlways;
  return proved_to_grow(books);
}

bool span_wants_huge_pages(const Books& books, size_t bytes) {
  if (os::options.huge_pages != os::HugePages::kAuto) return os::options.huge_pages == os::HugePages::kAlways;
  if (bytes >= kHugePage) return bytes <= books.live && (proved_to_grow(books) || spans_are_filled(books));
  return proved_to_grow(books) && bytes >= round_up(bytes, kGranule) / 8 * 7;
}

bool first_slabs_want_clean_memory(const Books& books) {
  return books.dirty < kDirtySlack && !slabs_want_huge_pages(books);
}

bool limit_allows(const Books& books, size_t bytes) {
  const size_t limit = os::options.max_heap_bytes;
  return limit == 0 || (bytes <= limit && books.live + books.promised <= limit - bytes);
}

void note_time(Books* books, uint64_t now_ms) {
  const uint64_t delay_ms = static_cast<uint64_t>(std::max<int64_t>(os::options.purge_delay_ms, 0));
  books->needed.pass(now_ms, kWindow * delay_ms, books->live);
}

bool something_may_be_due(const Books& books) {
  if (os::options.purge_delay_ms == 0) return books.dirty > 0;
  return books.dirty >= kDirtySlack && books.keepers == 0;
}

bool is_due(const FreeRun* dirty_run, uint64_t now_ms) {
  const int64_t delay = os::options.purge_delay_ms;
  // Not the difference: the run may have been freed after the clock was read.
  return delay >= 0 && dirty_run->freed_ms + static_cast<uint64_t>(delay) <= now_ms;
}

size_t growth_excess(const Books& books, size_t bytes) {
  const size_t resident = books.live + books.dirty + bytes;
  const size_t needed = books.needed;
  if (books.dirty <= slack(books) || resident <= needed) return 0;
  return round_up(std::min(books.dirty - slack(books), resident - needed), kHugePage);
}

bool growth_can_wait(const Books& books) { return books.keepers > 0 && books.dirty <= 2 * slack(books); }

bool purger_is_useful(const Books& books) {
  if (books.live < kDirtySlack || os::options.purge_delay_ms < 0) return false;
  if (os::options.background == os::Background::kAll) return true;
  return os::options.background == os::Background::kAuto && books.has_thread_heaps.load(std::memory_order_relaxed) &&
         !__libc_single_threaded;
}

}  // namespace annex::commitment
