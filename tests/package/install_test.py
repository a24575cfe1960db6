"""Installs a build into an empty place, then uses it as a stranger would: by find_package with each target, by
pkg-config and by the installed launcher, after the place has been moved.

install_test.py --build BUILD --cxx C++-COMPILER
"""

import argparse
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
VERSION = re.search(r"project\(annex VERSION (\S+)", (HERE.parent.parent / "CMakeLists.txt").read_text())[1]


def run(*command, env=None):
    """Returns the command's output. Where it fails: all that it said, and the end."""
    result = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **(env or {})},
        timeout=300,
    )
    if result.returncode != 0:
        raise SystemExit(f"FAILED ({result.returncode}): {' '.join(map(str, command))}\n{result.stdout}")
    return result.stdout


def expect(what, got, wanted):
    if wanted not in got:
        raise SystemExit(f"FAILED {what}: {wanted!r} expected in {got!r}")
    print(f"ok: {what}")


def expect_installed(prefix):
    names = {path.relative_to(prefix).name for path in prefix.rglob("*")}
    wanted = {
        "annex",
        "annex.h",
        "libannex.so",
        "libannex.a",
        "libannex-solo.so",
        "libannex-solo.a",
        "libannex-offload.so",
        "libannex-offload.a",
        *(f"libannex{flavour}.so.0" for flavour in ("", "-solo", "-offload", "-hardened")),
        "libannex-hardened.so",
        "libannex-hardened.a",
        "annexConfig.cmake",
        "annexConfigVersion.cmake",
        "annexTargets.cmake",
        "annex.pc",
        "annex-solo.pc",
        "annex-offload.pc",
    }
    if wanted - names:
        raise SystemExit(f"FAILED not installed: {' '.join(sorted(wanted - names))}")
    for file in prefix.rglob("*"):  # an installation knows nothing of the tree it came from
        if file.suffix in (".cmake", ".pc") and str(HERE.parent.parent) in file.read_text():
            raise SystemExit(f"FAILED {file} names the source tree")


def by_cmake(prefix, build):
    run("cmake", "-G", "Ninja", "-S", HERE / "consumer", "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", build)
    for target in (
        "annex",
        "annex-static",
        "solo",
        "solo-static",
        "offload",
        "offload-static",
        "hardened",
        "hardened-static",
    ):
        flavour = "shared" if target.startswith("annex") else target.removesuffix("-static")
        kinds = ["c", "cpp"] + (["whole"] if "static" in target else [])
        for kind in kinds:
            expect(f"find_package, {kind}, annex::{target}", run(build / f"{kind}-{target}"), flavour)


def by_pkg_config(prefix, scratch, cxx):
    file = next(prefix.rglob("annex.pc"))
    env = {"PKG_CONFIG_PATH": str(file.parent)}
    for name, flavour in (
        ("annex", "shared"),
        ("annex-solo", "solo"),
        ("annex-offload", "offload"),
        ("annex-hardened", "hardened"),
    ):
        flags = run("pkg-config", "--cflags", "--libs", name, env=env).split()
        program = scratch / f"by-pkg-config-{name}"
        # Flags before the source and --as-needed, as careless makefiles and Ubuntu's compilers have them.
        run(cxx, "-Wl,--as-needed", HERE / "consumer/consumer.cpp", "-o", program, *flags)
        got = run(program, env={"LD_LIBRARY_PATH": str(file.parent.parent)})
        expect(f"pkg-config {name}", got, flavour)
    expect("pkg-config --modversion", run("pkg-config", "--modversion", "annex", env=env), "0.1")


def by_loader(prefix, build):
    """Who is linked with the library asks for it by its name with the number, and for the calls by their version."""
    dynamic = run("readelf", "-W", "-d", "-V", build / "c-annex")
    expect("what a program asks for", dynamic, "[libannex.so.0]")
    expect("what a program asks of it", dynamic, "ANNEX_0.1")
    library = next(prefix.rglob("libannex.so"))
    maps = run("cat", "/proc/self/maps", env={"LD_PRELOAD": library})
    expect("LD_PRELOAD of the plain name", maps, f"/libannex.so.{VERSION}\n")


def by_launcher(prefix):
    for mode, library in (
        ("shared", "libannex.so"),
        ("solo", "libannex-solo.so"),
        ("offload", "libannex-offload.so"),
        ("hardened", "libannex-hardened.so"),
    ):
        maps = run(prefix / "bin/annex", "run", "--mode", mode, "cat", "/proc/self/maps")
        expect(f"installed launcher, {mode}", maps, f"/{library}.{VERSION}\n")
        preloaded = run(prefix / "bin/annex", "run", "--mode", mode, "sh", "-c", "echo $LD_PRELOAD")
        expect(f"installed launcher, {mode}, by its plain name", preloaded, f"/{library}\n")
    expect("annex --version", run(prefix / "bin/annex", "--version"), f"annex {VERSION}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--cxx", required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="annex-package-") as name:
        scratch = Path(name)
        run("cmake", "--install", arguments.build, "--prefix", scratch / "first")
        expect_installed(scratch / "first")
        shutil.move(scratch / "first", scratch / "moved")
        by_launcher(scratch / "moved")
        by_cmake(scratch / "moved", scratch / "consumer")
        by_loader(scratch / "moved", scratch / "consumer")
        by_pkg_config(scratch / "moved", scratch, arguments.cxx)


main()
