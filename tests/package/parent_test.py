"""Annex as a part of somebody's project, by add_subdirectory and by FetchContent, and built plainly on its own.

parent_test.py SOURCES

As a part it is the allocator and its launcher, needs nothing but a compiler, is optimized, and changes nothing of what
the project compiles itself or where that goes. On its own it is optimized too, where nobody says how to build.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = Path(sys.argv[1]).resolve()
PACKAGES = ("GTest", "fmt", "CLI11", "nlohmann_json", "PkgConfig", "Python3")


def run(*command):
    result = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=300,
    )
    if result.returncode != 0:
        raise SystemExit(f"FAILED ({result.returncode}): {' '.join(map(str, command))}\n{result.stdout}")
    return result.stdout


def require(what, held, detail=""):
    if not held:
        raise SystemExit(f"FAILED {what}: {detail}")
    print(f"ok: {what}")


def configure(source, build, *arguments):
    run("cmake", "-G", "Ninja", "-S", source, "-B", build, *arguments)
    return json.loads((build / "compile_commands.json").read_text())


def optimized(commands):
    """Whether each file of the library is, by the last level that its compiler is told."""
    own = [entry["command"].split() for entry in commands if entry["file"].startswith(f"{SOURCES}/src/core/")]
    levels = {next((word for word in reversed(words) if word.startswith("-O")), None) for words in own}
    return bool(own) and levels <= {"-O2", "-Os"} and all("-DNDEBUG" in words for words in own)


def as_a_part(way, build):
    commands = configure(
        HERE / "parent",
        build,
        f"-DANNEX={SOURCES}",
        f"-DWAY={way}",
        "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
        "-DCMAKE_UNITY_BUILD=ON",
        *(f"-DCMAKE_DISABLE_FIND_PACKAGE_{package}=ON" for package in PACKAGES),
    )
    plain = next(entry["command"] for entry in commands if entry["file"].endswith("/consumer.c"))
    targets = run("cmake", "--build", build, "--target", "help")
    left_out = [name for name in ("unit_tests", "annex-sim", "workload-", "annex-tables") if name in targets]
    require(f"{way}: no tests, no simulator, no workloads", not left_out, left_out)
    require(f"{way}: the project's own flags", not {"-Wall", "-Wextra", "-g1"} & set(plain.split()), plain)
    cache = (build / "CMakeCache.txt").read_text()
    require(f"{way}: the project's own build type", "CMAKE_BUILD_TYPE:STRING=\n" in cache, cache)
    rules = (build / "cmake_install.cmake").read_text() + "".join(
        file.read_text() for file in build.rglob("*/cmake_install.cmake")
    )
    require(f"{way}: nothing of Annex is installed with the project", "libannex" not in rules)
    return commands


def main():
    with tempfile.TemporaryDirectory(prefix="annex-parent-") as name:
        scratch = Path(name)
        off = [f"-DANNEX_{part}=OFF" for part in ("TESTS", "SIM", "WORKLOADS")]
        alone = configure(SOURCES, scratch / "alone", *off)
        require("on its own, no build type named: optimized", optimized(alone))
        as_a_part("FetchContent", scratch / "fetched")
        build = scratch / "added"
        commands = as_a_part("add_subdirectory", build)
        units = [entry for entry in commands if "Unity" in entry["file"]]
        own = [entry["command"].split() for entry in units if "annex-core.dir" in entry["command"]]
        require("as a part: optimized", own and all({"-O2", "-DNDEBUG"} <= set(words) for words in own), units)
        run("cmake", "--build", build, "--target", "program", "annex-cli")
        require("as a part: a program on it", "shared" in run(build / "program"))
        left = [path.name for path in build.iterdir() if "annex" in path.name and path.is_file()]
        require("as a part: its files are in its own folder", not left, left)
        launcher = next(path for path in build.rglob("annex") if path.is_file())
        maps = run(launcher, "run", "cat", "/proc/self/maps")
        require("as a part: the launcher finds the library", "/libannex.so" in maps, maps)


main()
