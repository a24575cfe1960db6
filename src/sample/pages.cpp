// Pages of sampled blocks: see pages.h.
#include "sample/pages.h"

#include "sample/place.h"

namespace annex::sample {

constinit Place place;
constinit char* first_page = nullptr;
constinit Page* pages = nullptr;

bool reserve_pages() {
  const size_t size = os::page_size();
  const size_t known = (kPages * sizeof(Page) + size - 1) / size * size;
  char* const start = static_cast<char*>(os::reserve(known + (2 * kPages + 1) * size, size));
  if (start == nullptr || !os::commit(start, known)) return false;
  pages = reinterpret_cast<Page*>(start);  // all zero: unused
  first_page = start + known;
  os::advise_huge(first_page, (2 * kPages + 1) * size, false);
  return true;
}

}  // namespace annex::sample
