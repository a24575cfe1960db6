// The size classes prove themselves when this file is compiled: in the header, each file that includes it would take
// more than half a second longer.
#include "core/size_class.h"

namespace annex {

static_assert([] {
  for (size_t n = 1; n <= kMaxSmall; ++n) {
    const SizeClass c = class_of(n);
    if (block_size(c) < n || (c > 0 && block_size(c - 1) >= n)) return false;  // the smallest that fits
    if (n > 128 && (block_size(c) - n) * 8 > block_size(c)) return false;      // at most 12.5 % wasted
  }
  return true;
}());

}  // namespace annex
