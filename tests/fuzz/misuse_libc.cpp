// What libc takes; see misuse_libc.h.
#include "fuzz/misuse_libc.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>

#include "annex/annex.h"

namespace {

constexpr std::size_t kMost = 256;  // each thread's stack has one, and libc uses most stacks again

const void* taken[kMost];
std::atomic<std::size_t> count{0};  // ever

}  // namespace

#ifdef ANNEX_TEST_REPLACED  // else libc does not allocate from Annex

// Stands before Annex's in the order of symbols, so that libc finds this one. Trials call annex_calloc.
extern "C" void* calloc(std::size_t number, std::size_t bytes) noexcept {
  void* const block = annex_calloc(number, bytes);
  taken[count++ % kMost] = block;
  return block;
}

#endif

namespace annex_test {

bool libc_took(const void* start) {
  if (count > kMost) abort();
  return std::find(taken, taken + count, start) != taken + count;
}

bool libc_took_any() { return count > 0; }

}  // namespace annex_test
