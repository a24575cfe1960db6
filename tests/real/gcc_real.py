"""gcc: GoogleTest's source compiled to an object, which must come out the same byte for byte; then linked and run."""

from pathlib import Path

from harness import SOURCE_ROOT, main

GTEST = Path("/usr/src/googletest/googletest")  # from libgtest-dev
PROGRAM = r"""
#include <gtest/gtest.h>
#include <map>
#include <string>
TEST(Real, MapOfStrings) {
  std::map<std::string, std::string> map;
  for (int i = 0; i < 20000; ++i) map[std::to_string(i * 7919 % 20011)] += std::string(i % 100, 'x');
  EXPECT_EQ(map.size(), 20000u);
}
TEST(Real, Exception) { EXPECT_THROW(std::string().at(3), std::out_of_range); }
"""


def work(on):
    (on.dir / "real_test.cpp").write_text(PROGRAM)
    compile = ["g++", "-std=c++17", "-O1", "-I", GTEST, "-I", GTEST / "include", "-frandom-seed=annex", "-c"]
    on.run([*compile, GTEST / "src/gtest-all.cc", "-o", "gtest-all.o"], timeout=120)
    on.run([*compile, "real_test.cpp", "-o", "real_test.o"])
    on.run(["ar", "rcsD", "libgtest.a", "gtest-all.o"])
    on.run(
        [
            "g++",
            "-o",
            "real_test",
            "real_test.o",
            GTEST / "src/gtest_main.cc",
            "-I",
            GTEST / "include",
            "libgtest.a",
            "-pthread",
        ]
    )
    own = SOURCE_ROOT / "cli/program.cpp"
    on.run(["gcc", "-std=gnu++20", "-O2", "-I", SOURCE_ROOT / "cli", "-S", own, "-o", "program.s"])
    on.run(["./real_test", "--gtest_brief=1"])
    return {
        "object of gtest-all.cc": (on.dir / "gtest-all.o").read_bytes(),
        "archive": (on.dir / "libgtest.a").read_bytes(),
        "assembly of program.cpp": (on.dir / "program.s").read_bytes(),
        "linked program": (on.dir / "real_test").read_bytes(),
        "symbols": on.run(["nm", "-C", "gtest-all.o"]).out,
    }


main(work, ["g++", "ar", "nm"], processes=10)
