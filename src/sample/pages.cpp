// Pages of sampled blocks: see pages.h.
#include "sample/pages.h"

#include <cstdint>

#include "pages/arena.h"
#include "sample/place.h"

namespace annex::sample {

constinit Place place;
constinit char* first_page = nullptr;
constinit Page* pages = nullptr;

namespace {

// Outside of the first arena's addresses, since only what is outside of those gets from the fast paths to
// front/sampled.h.
char* reserve_out_of_reach(size_t bytes) {
  constexpr int kTries = 8;  // a range inside of the arena's addresses stays reserved, as it is small
  for (int i = 0; i < kTries; ++i) {
    char* const start = static_cast<char*>(os::reserve_anywhere(bytes, os::page_size()));
    if (start == nullptr || (!arenas[0].contains(start) && !arenas[0].contains(start + bytes))) return start;
  }
  return nullptr;
}

}  // namespace

bool reserve_pages() {
  const size_t size = os::page_size();
  const size_t known = (kPages * sizeof(Page) + size - 1) / size * size;
  char* const start = reserve_out_of_reach(known + (2 * kPages + 1) * size);
  if (start == nullptr || !os::commit(start, known)) return false;
  pages = reinterpret_cast<Page*>(start);  // all zero: unused
  first_page = start + known;
  os::advise_huge(first_page, (2 * kPages + 1) * size, false);
  return true;
}

}  // namespace annex::sample
