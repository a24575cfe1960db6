"""Compiles what the lab needs in C and C++: the runner, the toucher, the timer of calls, the workloads, the attacks.

One process at a time does so: figures begin with several runs at once, and each finds that the same is missing.
"""

import contextlib
import fcntl
import functools
import subprocess
from collections.abc import Iterator
from pathlib import Path

from annex_lab import paths


class BuildFailed(Exception):
    pass


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """No other process is in here meanwhile."""
    paths.BENCH.mkdir(parents=True, exist_ok=True)
    with open(paths.BENCH / "building", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise BuildFailed(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


def _compiled(name: str, output: str, flags: list[str]) -> Path:
    """native/NAME.c compiled, where what is there is older than any of the sources (NAME.c, and headers of its own)."""
    sources = sorted((paths.PACKAGE / "native").glob(f"{name}*.[ch]"))
    binary = paths.BENCH / output
    with alone():
        if not binary.exists() or any(binary.stat().st_mtime < source.stat().st_mtime for source in sources):
            _run(["cc", "-O2", "-Wall", *flags, str(paths.PACKAGE / "native" / f"{name}.c"), "-o", str(binary)])
    return binary


def _tool(name: str) -> Path:
    return _compiled(name, name, ["-static"])


def runner() -> Path:
    return _tool("runner")


def toucher() -> Path:
    return _tool("toucher")


def kernels() -> Path:
    """The microkernels that the simulator is validated with."""
    return _compiled("kernels", "kernels", ["-pthread"])


def kernel_costs() -> Path:
    """What times the kernel's calls and page faults on this machine."""
    return _compiled("kernel-costs", "kernel-costs", ["-pthread"])


def latency() -> Path:
    """The library that times calls of malloc and free; exceptions pass through its operator new."""
    flags = ["-shared", "-fPIC", "-fvisibility=hidden", "-ftls-model=initial-exec", "-fexceptions", "-fno-builtin"]
    return _compiled("latency", "latency.so", flags)


def floor() -> Path:
    """The bound that allocators are measured against: what a program takes when allocation costs next to nothing."""
    flags = ["-shared", "-fPIC", "-fvisibility=hidden", "-ftls-model=initial-exec", "-fno-builtin", "-pthread"]
    return _compiled("floor", "floor.so", flags)


def _cmake(source: str, name: str) -> Path:
    """The folder of a build of its own, apart from the library's."""
    build = paths.BENCH / name
    with alone():
        if not (build / "build.ninja").exists():
            configure = ["cmake", "-G", "Ninja", "-S", str(paths.ROOT / source), "-B", str(build)]
            _run([*configure, "-DCMAKE_BUILD_TYPE=Release"])
        _run(["cmake", "--build", str(build)])
    return build


@functools.cache
def workloads() -> Path:
    """The folder with the workload programs, built if need be: once a process."""
    return _cmake("workloads", "workloads") / "workloads"


@functools.cache
def attack() -> Path:
    """The program with all attacks, built if need be: once a process."""
    return _cmake("tests/attacks", "attacks") / "attack"
