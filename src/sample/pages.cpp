// Pages of sampled blocks: see pages.h.
#include "sample/pages.h"

#include <cstdint>

#include "core/arena.h"
#include "sample/place.h"

namespace annex::sample {

constinit Place place;
constinit char* first_page = nullptr;
constinit Page* pages = nullptr;

namespace {

// Out of reach of the fast paths, which send what they can't reach to front/sampled.h. The reach of a small arena goes
// beyond it, over addresses that are anybody's.
char* reserve_out_of_reach(size_t bytes) {
  constexpr int kTries = 8;  // where the first is within reach, it stays reserved: addresses are free
  for (int i = 0; i < kTries; ++i) {
    char* const start = static_cast<char*>(os::reserve_anywhere(bytes, os::page_size()));
    if (start == nullptr) return nullptr;
    const uintptr_t from = primary.reach - bytes;
    if (primary.reach == kNowhere || reinterpret_cast<uintptr_t>(start) - from >= kReach + bytes) return start;
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
