"""What a run costs in instructions and cache misses: a program run once under callgrind with an allocator in it.

Counted, not timed: the figures hardly vary from run to run, but they are those of a simulated processor (see
docs/latency-and-counts.md). Only the process that is started counts, not those it starts or forks.
"""

import dataclasses
import re
import shutil
from pathlib import Path

from annex_lab import sample
from annex_lab.allocators import Allocator
from annex_lab.programs.model import Command, Context, Program, Server
from annex_lab.sample import LIBC, RunFailed

SLOWER = 60  # than without valgrind; for the time limit
FAMILY = {"malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc", "memalign"}
_CACHE = re.compile(r"desc: (I1|D1|LL) cache: (\d+) B")
_NAMED = re.compile(r"(c?ob|c?fn)=\((\d+)\)(?: (.*))?$")


def valgrind() -> str:
    """The program itself: what Debian calls valgrind is a script around it that changes the environment."""
    found = shutil.which("valgrind.bin") or shutil.which("valgrind")
    if found is None:
        raise RunFailed("valgrind is not installed (lab/apt.txt)")
    return found


def totals(profile: str) -> dict[str, int]:
    """The sums over the whole run, by callgrind's names of the events, and the sizes of the caches it simulated."""
    events: list[str] = []
    sums: list[int] = []
    found = {}
    for line in profile.splitlines():
        if cache := _CACHE.match(line):
            found[cache[1]] = int(cache[2])
        elif line.startswith("events: "):
            events = line.split()[1:]
        elif line.startswith("totals: "):
            sums = [int(field) for field in line.split()[1:]]
    if not sums:
        raise ValueError("no totals in callgrind's file")
    # Trailing zeros are left out of the line.
    return found | dict(zip(events, sums + [0] * (len(events) - len(sums)), strict=True))


def callers(profile: str) -> dict[str, set[str]]:
    """For each object that was called from another one: the functions called.

    A line "ob=(3) /path" names the object of the costs that follow and "ob=(3)" names it again; "cob" is that of the
    function called in the next lines ("cfn"), the caller's own where it is not given.
    """
    names: dict[str, dict[str, str]] = {"ob": {}, "fn": {}}
    here, called = "", None
    found: dict[str, set[str]] = {}
    for line in profile.splitlines():
        match = _NAMED.match(line)
        if not match:
            continue
        kind, number, name = match.groups()
        table = names[kind[-2:]]
        if name is not None:
            table[number] = name
        value = table.get(number, "")
        if kind == "ob":
            here = value
        elif kind == "cob":
            called = value
        elif kind == "cfn":
            if called is not None and called != here:
                found.setdefault(called, set()).add(value)
            called = None
    return found


def complaint(profile: str, expected: str) -> str | None:
    """A count must not go under another allocator's name: None where nobody but that object serves malloc.

    What a library's own functions are called says little, as malloc may be another name of the same function; but
    where another object's malloc was called, that object's was one.
    """
    called = {Path(object_).name: names for object_, names in callers(profile).items()}
    for name, functions in called.items():
        # The linker has a malloc of its own, until the program's is there. "???" is code outside of any .text section,
        # such as tcmalloc's fast paths.
        if name not in (expected, "???") and not name.startswith("ld-") and functions & FAMILY:
            return f"{min(functions & FAMILY)} is served by {name}"
    return None if expected in called else f"{expected} was never called"


def _counted(program: Program, profile: Path) -> Program:
    """The program under callgrind; %p is the number of the process, since a forked child writes a file as well."""
    options = ["--tool=callgrind", "--cache-sim=yes", "--branch-sim=yes", f"--callgrind-out-file={profile}.%p"]

    def run(context: Context) -> Command:
        task = program.run(context)
        if isinstance(task, Server):
            raise RunFailed("servers are not counted")
        return dataclasses.replace(task, argv=[valgrind(), "-q", *options, *task.argv], times=1)

    return dataclasses.replace(program, run=run)


def _profile(context: Context, start: Path) -> str:
    """What callgrind left of the process that the runner started; that keeps its number through valgrind."""
    report = (context.scratch / "report").read_text().split()
    file = start.with_name(f"{start.name}.{report[1]}")
    return file.read_text(errors="replace") if file.exists() else ""


def measure(program: Program, context: Context, allocator: Allocator) -> dict:
    """One run of the program as an item of `counts` in the results' schema; raises RunFailed."""
    start = (context.scratch / "callgrind").absolute()
    patient = dataclasses.replace(context, limit_s=context.limit_s * SLOWER)
    sample.run(_counted(program, start), patient, allocator.preload, allocator.env)
    profile = _profile(context, start)
    try:
        sums = totals(profile)
    except ValueError:
        raise RunFailed("callgrind counted nothing: the program was replaced by exec, or ended by a signal") from None
    if why := complaint(profile, allocator.library.resolve().name if allocator.library else LIBC):
        raise RunFailed(why)
    return {
        "workload": program.name,
        "allocator": allocator.name,
        "instructions": sums["Ir"],
        "data_reads": sums["Dr"],
        "data_writes": sums["Dw"],
        "l1i_misses": sums["I1mr"],
        "l1d_misses": sums["D1mr"] + sums["D1mw"],
        "ll_misses": sums["ILmr"] + sums["DLmr"] + sums["DLmw"],
        "branches": sums["Bc"] + sums["Bi"],
        "branch_mispredictions": sums["Bcm"] + sums["Bim"],
        "l1i_bytes": sums["I1"],
        "l1d_bytes": sums["D1"],
        "ll_bytes": sums["LL"],
    }
