// The kinds of programs, and how they pick sizes; see profiles.h.
#include "property/profiles.h"

#include "annex/annex.h"
#include "common/opaque.h"

namespace annex_test {
namespace {

constexpr std::size_t kMiB = 1024 * 1024;

// The shares of calls favour allocation a little; the live target below turns the balance.
constexpr Profile kProfiles[] = {
    // name         malloc zero align realloc free | tiny bound medium large huge | live
    {"tiny", 40, 5, 0, 5, 45, 90, 10, 0, 0, 0, 20000, 64 * kMiB},
    {"mixed", 30, 10, 5, 10, 40, 40, 20, 30, 9, 1, 3000, 192 * kMiB},
    {"boundaries", 30, 10, 5, 10, 40, 0, 100, 0, 0, 0, 3000, 192 * kMiB},
    {"aligned", 10, 0, 40, 5, 40, 30, 20, 30, 20, 0, 2000, 192 * kMiB},
    {"reallocating", 10, 5, 0, 60, 15, 20, 20, 40, 18, 2, 500, 192 * kMiB},
    {"large", 30, 10, 10, 10, 35, 0, 10, 10, 60, 20, 60, 256 * kMiB},
    {"few", 30, 5, 5, 10, 45, 30, 20, 30, 18, 2, 8, 192 * kMiB},
};

// Uniform in the exponent: as many sizes between 1 KiB and 2 KiB as between 16 KiB and 32 KiB.
std::size_t log_uniform(Random& random, std::size_t low_log2, std::size_t high_log2) {
  const std::size_t exponent = random.between(low_log2, high_log2 - 1);
  return (std::size_t{1} << exponent) + random.below(std::size_t{1} << exponent);
}

}  // namespace

std::span<const Profile> profiles() { return kProfiles; }

Sizes::Sizes(const Profile& profile) : profile_(profile) {
  for (std::size_t bytes = 1; bytes < 2 * kMiB;) {
    void* block = opaque(annex_malloc(bytes));
    const std::size_t usable = annex_usable_size(block);
    annex_free(block);
    if (usable < bytes) break;  // the model will say so
    boundaries_.push_back(usable);
    // Above the classes every page is a boundary: go on in bigger steps there.
    bytes = usable + 1 + (usable > kMiB / 8 ? usable / 8 : 0);
  }
}

std::size_t Sizes::pick(Random& random) const {
  std::size_t at = random.below(100);
  if (at < profile_.tiny) return random.between(0, 128);
  at -= profile_.tiny;
  if (at < profile_.boundary && !boundaries_.empty()) {
    return boundaries_[random.below(boundaries_.size())] - 1 + random.below(3);
  }
  at -= profile_.boundary;
  if (at < profile_.medium) return log_uniform(random, 7, 15);
  at -= profile_.medium;
  if (at < profile_.large) return log_uniform(random, 15, 21);
  // Every page of a huge zeroed block is looked at, so the hugest are rare.
  return random.chance(10) ? log_uniform(random, 24, 26) : log_uniform(random, 21, 24);
}

std::size_t Sizes::pick_alignment(Random& random) {
  if (random.chance(2)) return random.between(0, 100);  // mostly no power of two
  if (random.chance(70)) return std::size_t{1} << random.between(0, 8);
  return std::size_t{1} << random.between(0, 22);
}

}  // namespace annex_test
