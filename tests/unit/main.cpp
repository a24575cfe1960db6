// main of the unit tests. Those that end in an error start the program again: where GoogleTest only forks, standard
// error is a file that was opened since the library's start, into which it says nothing (os/standard_error.h).
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
