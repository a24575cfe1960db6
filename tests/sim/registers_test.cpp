#include "guest/registers.h"

#include <gtest/gtest.h>

namespace annex::sim {
namespace {

struct RegistersTest : testing::Test {
  static constexpr Address kEntry = 0x401000;
  char program[4] = "ls";
  // The number of arguments, the arguments, null; the environment, null.
  alignas(16) uint64_t stack[4] = {1, of(program), 0, 0};
  std::array<uint64_t, 17> registers = {};

  RegistersTest() {
    registers[4] = of(stack);
    registers[16] = kEntry;
  }
  template <class T>
  static uint64_t of(const T& place) {
    return reinterpret_cast<uint64_t>(&place);
  }
};

TEST_F(RegistersTest, AreKnownAtTheEntry) { EXPECT_TRUE(are_registers_of_entry(of(registers), kEntry)); }

TEST_F(RegistersTest, ElsewhereTheyAreNotTaken) {
  EXPECT_FALSE(are_registers_of_entry(of(registers) + 8, kEntry));
  EXPECT_FALSE(are_registers_of_entry(16, kEntry));  // nothing is there
  registers[16] = kEntry + 4;
  EXPECT_FALSE(are_registers_of_entry(of(registers), kEntry));
}

TEST_F(RegistersTest, TheStackPointerPointsToTheArguments) {
  registers[4] += 16;
  EXPECT_FALSE(are_registers_of_entry(of(registers), kEntry));
  registers[4] = 0;
  EXPECT_FALSE(are_registers_of_entry(of(registers), kEntry));
}

}  // namespace
}  // namespace annex::sim
