// Text in fixed buffers.
#include "os/message.h"

#include <gtest/gtest.h>

#include <string>

namespace annex::os {
namespace {

std::string format(auto write, size_t capacity = 100) {
  std::string buffer(capacity, '?');
  Text text(buffer.data(), capacity);
  write(text);
  return buffer.substr(0, text.stored());
}

TEST(Text, NumbersAndAddresses) {
  EXPECT_EQ(format([](Text& t) { t << uint64_t{0} << " " << uint64_t{1234567} << " " << UINT64_MAX; }),
            "0 1234567 18446744073709551615");
  EXPECT_EQ(format([](Text& t) {
              t.hex(0) << " ";
              t.hex(0x1f);
              t << " ";
              t.hex(UINT64_MAX);
            }),
            "0x0 0x1f 0xffffffffffffffff");
}

TEST(Text, CutsOffButCountsOn) {
  char buffer[4];
  Text text(buffer, sizeof buffer);
  text << "abcdefgh";
  EXPECT_EQ(text.size(), 8u);
  EXPECT_EQ(std::string(buffer, text.stored()), "abcd");
}

TEST(Fatal, IsOneLineAndAborts) { EXPECT_DEATH(fatal("broken"), "^annex: broken in .+\\[[0-9]+\\].*\n$"); }

}  // namespace
}  // namespace annex::os
