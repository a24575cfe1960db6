// Sizes that wrap around. The attacker wants a block that is smaller than its owner believes.
#include <malloc.h>

#include <cstdint>
#include <cstdlib>

#include "aftermath.h"
#include "classes.h"

namespace attacks {
namespace {

constexpr char kGain[] = "a block that is smaller than its owner believes";

template <typename Request>
Verdict ask(Request request) {
  before_call();
  if (opaque(request()) != nullptr) return exploited("a block for a size that does not exist");
  after_misuse();
  const char* gain = ordinary_use();
  return gain == nullptr ? refused("NULL") : exploited(gain);
}

void* posix_aligned(std::size_t alignment, std::size_t bytes) {
  void* block = nullptr;
  return posix_memalign(&block, alignment, bytes) == 0 ? block : nullptr;
}

constexpr Attack kAttacks[] = {
    {"calloc-wraps", kGain, "2^60 + 1 times 16 bytes, which wraps to 16",
     [] { return ask([] { return calloc(opaque((std::size_t{1} << 60) + 1), 16); }); }},
    {"reallocarray-wraps", kGain, "the same of reallocarray",
     [] { return ask([] { return reallocarray(nullptr, opaque((std::size_t{1} << 60) + 1), 16); }); }},
    {"malloc-wraps", kGain, "2^64 - 8 bytes, which wraps where a header is added",
     [] { return ask([] { return malloc(opaque(SIZE_MAX - 7)); }); }},
    {"realloc-wraps", kGain, "the same of realloc",
     [] { return ask([] { return realloc(take(kSize), opaque(SIZE_MAX - 7)); }); }},
    {"aligned-wraps", kGain, "2^64 - 4,096 bytes aligned to 1 MiB, which wraps where it is rounded up",
     [] { return ask([] { return posix_aligned(kLarge, opaque(SIZE_MAX - 4095)); }); }},
    {"pvalloc-wraps", kGain, "2^64 - 8 bytes of pvalloc, which wraps where it is rounded up to pages",
     [] { return ask([] { return pvalloc(opaque(SIZE_MAX - 7)); }); }},
};

}  // namespace

const AttackClass kHugeRequest = {"huge request", kAttacks};

}  // namespace attacks
