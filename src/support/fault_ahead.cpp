// Page faults ahead of need: see fault_ahead.h.
#include "support/fault_ahead.h"

#include <algorithm>
#include <atomic>

#include "os/options.h"
#include "pages/commitment.h"
#include "pages/page_heap.h"

namespace annex {

namespace {

constexpr size_t kShare = 32;  // of the heap
constexpr size_t kLargestSmallPiece = size_t{256} << 10;
constexpr size_t kLeastBeforeHuge = kHugePage / 2;
constexpr size_t kMostBeforeHuge = 2 * kHugePage;

// Written with the page heap's lock held; read without it, to see that there is nothing to do.
std::atomic<size_t> peak_seen{0};
std::atomic<size_t> owed{0};
std::atomic<bool> populating{false};  // a thread does, at this moment

bool needless() {
  return populating.load(std::memory_order_relaxed) ||
         (owed.load(std::memory_order_relaxed) == 0 &&
          page_heap.books.peak == peak_seen.load(std::memory_order_relaxed));
}

}  // namespace

bool fault_ahead() {
  if (needless()) return false;
  Locked lock;
  if (needless()) return false;  // another thread was faster
  const Books& books = page_heap.books;
  const bool huge = commitment::slabs_want_huge_pages(books);
  const size_t share = round_down(books.live / kShare, kGranule);
  const bool by_huge_page = huge && share >= kHugePage * 3 / 4;
  const size_t piece = by_huge_page ? kHugePage : std::clamp(share, kGranule, kLargestSmallPiece);
  if (books.peak != peak_seen) {
    peak_seen = books.peak;
    const size_t ahead =
        by_huge_page ? std::clamp(share - std::min(share, kHugePage), kLeastBeforeHuge, kMostBeforeHuge) : piece;
    owed = ahead - std::min<size_t>(books.dirty, ahead);
  }
  if (owed == 0 || os::options.purge_delay_ms == 0) {
    owed = 0;
    return false;
  }
  owed -= std::min<size_t>(owed, piece);
  populating = true;
  if (!page_heap.populate(lock, piece, huge)) owed = 0;
  populating = false;
  return owed > 0;
}

}  // namespace annex
