// Kinds of programs that the property tests imitate: which sizes they ask for, which calls, how
// much they keep.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "common/random.h"

namespace annex_test {

struct Profile {
  const char* name;
  // Shares of the calls, in percent; what is left to 100 checks a block in place.
  unsigned allocate, zeroed, aligned, reallocate, release;
  // Shares of the sizes, in percent: 0..128, around class boundaries, log-uniform to 32 KiB, to 2
  // MiB, to 64 MiB.
  unsigned tiny, boundary, medium, large, huge;
  std::size_t live_blocks;  // around which the number of live blocks settles
  std::size_t live_bytes;
};

std::span<const Profile> profiles();

class Sizes {
 public:
  explicit Sizes(const Profile& profile);
  std::size_t pick(Random& random) const;
  // Mostly small alignments, sometimes megabytes.
  static std::size_t pick_alignment(Random& random);

 private:
  const Profile& profile_;
  std::vector<std::size_t> boundaries_;  // usable sizes that the allocator really has
};

}  // namespace annex_test
