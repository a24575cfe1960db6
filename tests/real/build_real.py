"""A small project configured by cmake and built by ninja, and a shell script: hundreds of forks and short processes."""

from harness import INPUTS, main

CMAKE = """
cmake_minimum_required(VERSION 3.22)
project(small LANGUAGES C)
enable_testing()
file(GLOB sources part*.c)
add_library(parts STATIC ${sources})
add_executable(small main.c)
target_link_libraries(small parts m)
add_test(NAME small COMMAND small 12)
"""
MAIN = """
#include <stdio.h>
#include <stdlib.h>
int main(int n, char** a) { int x = n > 1 ? atoi(a[1]) : 1; printf("%d\\n", CALLS); }
"""


def write_project(place):
    names = [f"part{n}" for n in range(12)]
    for n, name in enumerate(names):
        text = f"#include <math.h>\nint {name}(int x) {{ return x * {n} + (int)sqrt(x); }}\n"
        (place / f"{name}.c").write_text(text)
    declared = "".join(f"int {name}(int);\n" for name in names)
    calls = " + ".join(f"{name}(x)" for name in names)
    (place / "main.c").write_text(declared + MAIN.replace("CALLS", calls))
    (place / "CMakeLists.txt").write_text(CMAKE)


def work(on):
    write_project(on.dir)
    on.run(["cmake", "-G", "Ninja", "-S", ".", "-B", "build", "-DCMAKE_BUILD_TYPE=Release"])
    on.run(["ninja", "-C", "build", "-j2"])
    return {
        "program": on.run(["build/small", "1000"]).out,
        "binary": (on.dir / "build/small").read_bytes(),
        "tests": b"100% tests passed" in on.run(["ctest", "--test-dir", "build"]).out,
        "shell": on.run(["bash", INPUTS / "shell.sh"]).out,
    }


main(work, ["cmake", "ninja", "gcc", "bash", "awk", "tar"], processes=100)
