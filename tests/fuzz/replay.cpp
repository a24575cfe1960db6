// Replays inputs of the fuzz target in every build, with any compiler: random bytes from fixed
// seeds, and the files in the directory that FUZZ_REGRESSIONS names, which are inputs that once
// failed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "common/random.h"
#include "fuzz/interpreter.h"

using namespace annex_test;

namespace {

#ifdef ANNEX_TEST_SANITIZED
constexpr int kInputs = 60;
#else
constexpr int kInputs = 250;
#endif

}  // namespace

TEST(Replay, RandomBytes) {
  for (int seed = 1; seed <= kInputs; ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    std::vector<std::uint8_t> bytes(random.between(1, 4000));
    // Some inputs use few distinct operations, which random bytes alone never would.
    const std::uint8_t mask = random.chance(50) ? 0xFF : static_cast<std::uint8_t>(random.next() | 0x18);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.next() >> 32) & mask;
    ASSERT_EQ(interpret(bytes.data(), bytes.size()), "") << "seed " << seed;
  }
}

TEST(Replay, Regressions) {
  const char* directory = getenv("FUZZ_REGRESSIONS");
  ASSERT_NE(directory, nullptr) << "set FUZZ_REGRESSIONS to tests/fuzz/regressions";
  int inputs = 0;
  for (const auto& file : std::filesystem::directory_iterator(directory)) {
    std::ifstream in(file.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    EXPECT_EQ(interpret(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()), "") << file.path();
    ++inputs;
  }
  EXPECT_GT(inputs, 0) << directory;
}
