// One heap's share of the bytes that were ever touched (pages/books.h). The page heap is told when it has changed by a
// sixteenth of the heap, or a granule, and when the heap takes a run, as what fresh memory it gets is then decided by
// it: a line that all threads write would otherwise be written each time that one carves a page.
//
// Synchronization: none; it belongs to its heap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "pages/page_heap.h"

namespace annex {

class TouchedBytes {
 public:
  static constexpr uint32_t kUntold = 16;  // of the heap's granules

  // In a heap of so many granules.
  void add(size_t bytes, uint32_t granules) { change(static_cast<ptrdiff_t>(bytes), granules); }
  void subtract(size_t bytes, uint32_t granules) { change(-static_cast<ptrdiff_t>(bytes), granules); }
  void tell() {
    // Or less, modulo 2^64.
    page_heap.books.note_touched(static_cast<size_t>(untold_));
    untold_ = 0;
  }

 private:
  void change(ptrdiff_t by, uint32_t granules) {
    untold_ += by;
    const ptrdiff_t most = std::max<ptrdiff_t>(granules / kUntold, 1) * static_cast<ptrdiff_t>(kGranule);
    if (untold_ >= most || untold_ <= -most) tell();
  }

  ptrdiff_t untold_ = 0;
};

}  // namespace annex
