// Sample points: see sample_points.h.
#include "core/sample_points.h"

#include <algorithm>
#include <iterator>

#include "os/random.h"
#include "pages/page_heap.h"

namespace annex {

constinit std::atomic<uint64_t> sample_rate{0};
constinit std::atomic<uint32_t> sample_begins{0};
constinit EndSamples* end_samples = nullptr;

namespace {

// -ln(u) for a u between 0 and 1 that is drawn with equal chances, without libm: right to six digits.
double drawn_exponential(uint64_t random) {
  constexpr double kLn2 = 0.69314718055994531;
  const int zeros = __builtin_clzll(random | 1);
  // u = (1 - m) * 2^-zeros, with 1 - m in [1/2, 1).
  const double u = static_cast<double>((random | 1) << zeros) * 0x1p-64;
  const double s = (1 - u) / (1 + u);
  const double square = s * s;
  const double sum =
      1 + square * (1.0 / 3 + square * (1.0 / 5 + square * (1.0 / 7 + square * (1.0 / 9 + square / 11))));
  return zeros * kLn2 + 2 * s * sum;
}

// 1 - e^-x for an x >= 0.
double one_minus_exp(double x) {
  if (x > 40) return 1;
  int doublings = 0;
  for (; x > 0.25; x /= 2) ++doublings;
  double y = x * (1 - x / 2 * (1 - x / 3 * (1 - x / 4 * (1 - x / 5 * (1 - x / 6)))));
  for (; doublings > 0; --doublings) y *= 2 - y;
  return y;
}

}  // namespace

double sample_chance(size_t bytes, uint64_t rate) {
  return one_minus_exp(static_cast<double>(bytes) / static_cast<double>(rate));
}

SamplePoints* SamplePoints::make() { return static_cast<SamplePoints*>(page_heap.map_metadata(sizeof(SamplePoints))); }

void SamplePoints::begin(uint64_t wanted, uint32_t wanted_begins) {
  if (random == 0) random = os::random_word();
  if (begins != wanted_begins) std::fill(std::begin(pending), std::end(pending), nullptr);
  rate = wanted;
  begins = wanted_begins;
  for (SizeClass c = 0; c < kClasses; ++c) {
    until[c] = draw(c);
    ready[c] = 0;
  }
}

uint32_t SamplePoints::draw(SizeClass c) {
  const double bytes = drawn_exponential(os::mixed(random++)) * static_cast<double>(rate);
  return static_cast<uint32_t>(std::min(bytes / static_cast<double>(block_size(c)), 1e9));
}

}  // namespace annex
