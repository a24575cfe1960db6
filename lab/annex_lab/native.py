"""Compiles what the lab needs in C and C++: the runner, the toucher, the workloads."""

import subprocess
from pathlib import Path

from annex_lab import paths


class BuildFailed(Exception):
    pass


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise BuildFailed(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


def _tool(name: str) -> Path:
    source = paths.PACKAGE / "native" / f"{name}.c"
    binary = paths.BENCH / name
    if not binary.exists() or binary.stat().st_mtime < source.stat().st_mtime:
        paths.BENCH.mkdir(parents=True, exist_ok=True)
        _run(["cc", "-O2", "-Wall", "-static", str(source), "-o", str(binary)])
    return binary


def runner() -> Path:
    return _tool("runner")


def toucher() -> Path:
    return _tool("toucher")


def workloads() -> Path:
    """The folder with the workload programs, built if need be, apart from the library's own build."""
    build = paths.BENCH / "workloads"
    if not (build / "build.ninja").exists():
        _run(
            [
                "cmake",
                "-G",
                "Ninja",
                "-S",
                str(paths.ROOT / "workloads"),
                "-B",
                str(build),
                "-DCMAKE_BUILD_TYPE=Release",
            ]
        )
    _run(["cmake", "--build", str(build)])
    return build / "workloads"
