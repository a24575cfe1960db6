// Random sequences of allocator calls against the shadow model, one test per kind of program.
//
// A failure prints the profile, the seed and the operation. PROPERTY_SEED=n runs that seed alone;
// PROPERTY_OPERATIONS=n makes the sequences longer.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "property/model.h"
#include "property/profiles.h"

using namespace annex_test;

namespace {

#if defined(__SANITIZE_THREAD__)
constexpr std::size_t kOperations = 3000;
constexpr std::uint64_t kSeeds = 1;
#elif defined(ANNEX_TEST_SANITIZED)
constexpr std::size_t kOperations = 5000;
constexpr std::uint64_t kSeeds = 2;
#else
constexpr std::size_t kOperations = 12000;
constexpr std::uint64_t kSeeds = 3;
#endif

std::size_t from_environment(const char* name, std::size_t otherwise) {
  const char* text = getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// One step. Above the live target frees are preferred, so the number of live blocks swings around
// it.
void step(Model& model, const Profile& profile, const Sizes& sizes, Random& random) {
  if (model.blocks() > profile.live_blocks && random.chance(60)) return model.release(random.next());
  std::size_t at = random.below(100);
  if (at < profile.allocate) return model.allocate(sizes.pick(random));
  at -= profile.allocate;
  if (at < profile.zeroed) {
    const std::size_t count = random.chance(50) ? 1 : random.between(0, 40);
    return model.allocate_zeroed(count, sizes.pick(random) / (count == 0 ? 1 : count));
  }
  at -= profile.zeroed;
  if (at < profile.aligned) {
    const std::size_t alignment = Sizes::pick_alignment(random);
    return model.allocate_aligned(alignment, sizes.pick(random));
  }
  at -= profile.aligned;
  if (at < profile.reallocate) {
    const std::size_t index = random.next();
    return model.reallocate(index, random.chance(1) ? 0 : sizes.pick(random));
  }
  at -= profile.reallocate;
  if (at < profile.release) return model.release(random.next());
  model.check(random.next());
}

// What is done now and then, between steps.
void occasionally(Model& model, std::size_t operation, Random& random) {
  if (operation % 1000 == 999) model.check_walk();
  if (operation % 500 == 499) model.check_stats();
  if (operation % 4000 == 3999) model.check_all();
  if (random.below(3000) == 0) model.purge();
  if (random.below(2000) == 0) model.impossible(SIZE_MAX / 2 + random.next() % (SIZE_MAX / 2));
  // A program that ends a phase: most of its blocks go at once, in a row or at random.
  if (random.below(10000) == 0) {
    for (std::size_t left = model.blocks() - model.blocks() / 8; left > 0; --left) {
      model.release(operation % 2 == 0 ? random.next() : left);
    }
  }
}

void run(const char* name) {
  const Profile* profile = nullptr;
  for (const Profile& candidate : profiles()) {
    if (std::strcmp(candidate.name, name) == 0) profile = &candidate;
  }
  ASSERT_NE(profile, nullptr) << name;
  const std::size_t operations = from_environment("PROPERTY_OPERATIONS", kOperations);
  const std::uint64_t only = from_environment("PROPERTY_SEED", 0);
  const Sizes sizes(*profile);
  for (std::uint64_t seed = only != 0 ? only : 1; seed <= (only != 0 ? only : kSeeds); ++seed) {
    Random random(seed);
    Model model(profile->live_bytes);
    for (std::size_t operation = 0; operation < operations; ++operation) {
      step(model, *profile, sizes, random);
      occasionally(model, operation, random);
      ASSERT_EQ(model.failure(), nullptr)
          << model.failure() << "\nprofile " << name << ", seed " << seed << ", operation " << operation
          << ": repeat with PROPERTY_SEED=" << seed << " --gtest_filter=RandomOperations." << name;
    }
    model.check_all();
    model.check_walk();
    model.release_all();
    ASSERT_EQ(model.failure(), nullptr) << model.failure() << "\nat the end of profile " << name << ", seed " << seed;
  }
}

}  // namespace

TEST(RandomOperations, tiny) { run("tiny"); }
TEST(RandomOperations, mixed) { run("mixed"); }
TEST(RandomOperations, boundaries) { run("boundaries"); }
TEST(RandomOperations, aligned) { run("aligned"); }
TEST(RandomOperations, reallocating) { run("reallocating"); }
TEST(RandomOperations, large) { run("large"); }
TEST(RandomOperations, few) { run("few"); }
