#!/usr/bin/env python3
"""How much an allocator's software prefetches matter on this machine: writes a copy of its library in which they are
nops of the same length, and runs a program under both in turn.

    tools/prefetch_effect.py libtcmalloc.so build/tcmalloc-nop.so -- build/bench/workloads/workloads/larson --scale 0.7

Prints user time: the least of each, their ratio (above 1: the prefetches help), and the median of the pairs' ratios
with its quartiles.
"""

import argparse
import os
import re
import statistics
import subprocess
from pathlib import Path

ESCAPE, NOP = 0x0F, 0x1F  # 0f 1f /r has the operands, and so the length, of 0f 18 /r and 0f 0d /r


def output_of(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def without_prefetches(library: Path, copy: Path) -> int:
    """Writes the copy; returns how many there were."""
    code = bytearray(library.read_bytes())
    loaded = [
        tuple(int(number, 16) for number in segment)
        for segment in re.findall(r"LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+)", output_of("readelf", "-lW", str(library)))
    ]
    listing = output_of("objdump", "-d", str(library))
    found = re.findall(r"^ +([0-9a-f]+):\t((?:[0-9a-f]{2} )+)\s*\tprefetch(?:w|t\d|nta)", listing, re.M)
    for address, text in found:
        at, expected = int(address, 16), bytes.fromhex(text)
        (where,) = (at - start + offset for offset, start, size in loaded if start <= at < start + size)
        if code[where : where + len(expected)] != expected:
            raise SystemExit(f"{library}: what objdump shows at {address} is not there")
        code[where + expected.index(ESCAPE) + 1] = NOP
    copy.write_bytes(code)
    return len(found)


def user_time(program: list[str], library: Path) -> float:
    process = subprocess.Popen(
        program,
        env={**os.environ, "LD_PRELOAD": str(library.resolve())},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"{program[0]} failed under {library}")
    return usage.ru_utime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path)
    parser.add_argument("copy", type=Path)
    parser.add_argument("--pairs", type=int, default=25)
    parser.add_argument("program", nargs="+")
    given = parser.parse_args()
    print(f"{without_prefetches(given.library, given.copy)} prefetch instructions in {given.library}")
    times: dict[Path, list[float]] = {given.library: [], given.copy: []}
    for pair in range(given.pairs):
        for library in sorted(times, reverse=pair % 2 == 1):
            times[library].append(user_time(given.program, library))
    having, lacking = times[given.library], times[given.copy]
    ratios = [without / with_them for with_them, without in zip(having, lacking, strict=True)]
    low, median, high = statistics.quantiles(ratios, n=4)
    print(
        f"with {min(having):.3f} s, without {min(lacking):.3f} s, ratio {min(lacking) / min(having):.3f}; "
        f"of pairs {median:.3f} ({low:.3f} to {high:.3f})"
    )


if __name__ == "__main__":
    main()
