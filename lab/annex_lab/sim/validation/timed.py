"""What a run takes on this machine: CPU time, time from start to end, what the program says itself, cycles counted.

Where the processor's counter of cycles can be read, they are counted (perf stat, the kernel's share included); else
they are CPU time times the clock, which is measured beside, in the same rounds: a virtual machine's clock changes.
"""

import contextlib
import json
import os
import re
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from annex_lab import allocators as known
from annex_lab import native, quiet, sample
from annex_lab.sim import host, run
from annex_lab.sim.validation.validator import PLAIN_STRINGS

CLOCK = ("dependent-multiplies", 150_000)  # a kernel, and rounds of it: some 15 ms, and twice as long
OPERATIONS = 100  # of a round of that kernel


@dataclass(frozen=True)
class Timed:
    cpu_s: float
    wall_s: float
    line: dict | None = None  # a workload's line of JSON
    cycles: int | None = None  # counted
    disturbed: bool = False  # by other processes

    @property
    def own_s(self) -> float:
        """By the program's own clock, around its work, where it says so; else from start to end."""
        return self.line["seconds"] if self.line else self.wall_s


def environment(who: run.Guest, allocator: str) -> dict[str, str]:
    found = known.find(allocator)
    env = sample.environment(known.merged({**found.env, **who.env}, PLAIN_STRINGS))
    return {**env, "LD_PRELOAD": found.preload} if found.preload else env


def line_of(text: str) -> dict | None:
    """Of a workload's output: its line of JSON."""
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            found = json.loads(line)
            if isinstance(found, dict) and "seconds" in found:
                return found
    return None


def cycles_of(report: str) -> int | None:
    """Of perf stat's report with -x: the cycles, kernel's included; none where the counter does not count them."""
    for line in report.splitlines():
        fields = line.split(",")
        if len(fields) > 2 and fields[2] == "cycles" and fields[0].isdecimal():
            return int(fields[0])
    return None


def _counting(report: Path) -> list[str]:
    return ["perf", "stat", "-x,", "-e", "cycles", "-o", str(report), "--"]


def counts_cycles() -> bool:
    """Whether this process may count its children's cycles here."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        try:
            subprocess.run([*_counting(report), "true"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return False
        return cycles_of(report.read_text()) is not None


def timed(who: run.Guest, allocator: str, count: bool = False) -> Timed:
    """One run; `count`: its cycles too."""
    with tempfile.TemporaryDirectory() as folder, open(who.stdin or os.devnull) as stdin:
        report = Path(folder) / "report"
        watch = quiet.Watch().start()
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(
            [*(_counting(report) if count else []), *who.argv],
            check=True,
            env=environment(who, allocator),
            cwd=who.cwd,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
        foreign = watch.stop()
        return Timed(
            after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            wall,
            line_of(done.stdout.decode(errors="replace")),
            cycles_of(report.read_text()) if count else None,
            quiet.disturbed(foreign, watch.wall),
        )


def fastest_quarter(values: list[float]) -> float:
    return statistics.mean(sorted(values)[: max(1, len(values) // 4)])


@dataclass
class Clock:
    """This machine's, measured by a kernel whose cycles are known, in each round of something else."""

    few: list[float] = field(default_factory=list)  # seconds of CPU time
    many: list[float] = field(default_factory=list)

    def look(self) -> None:
        name, rounds = CLOCK
        for seconds, times in ((self.few, 1), (self.many, 2)):
            guest = run.Guest([str(native.kernels()), name, str(times * rounds)])
            seconds.append(timed(guest, "glibc").cpu_s)

    def ghz(self) -> float | None:
        """None: it was so disturbed that it shows nothing."""
        seconds = fastest_quarter(self.many) - fastest_quarter(self.few)
        cycles = CLOCK[1] * OPERATIONS * host.MULTIPLY_CYCLES
        least, most = host.POSSIBLE_GHZ
        ghz = cycles / seconds / 1e9 if seconds > 0 else 0
        return ghz if least <= ghz <= most else None


@dataclass
class Rounds:
    """Runs of one program under several allocators, which take turns."""

    of: dict[str, list[Timed]]
    clock: Clock

    @property
    def disturbed(self) -> int:
        return sum(one.disturbed for runs in self.of.values() for one in runs)

    @property
    def runs(self) -> int:
        return sum(len(runs) for runs in self.of.values())


def rounds(who: run.Guest, allocators: tuple[str, ...], times: int, count: bool = False) -> Rounds:
    found = Rounds({name: [] for name in allocators}, Clock())
    for _ in range(times):
        found.clock.look()
        for name in allocators:
            found.of[name].append(timed(who, name, count))
    return found


def disturbed(all_rounds: Iterable[Rounds]) -> str:
    """In words."""
    found = list(all_rounds)
    others, runs = sum(one.disturbed for one in found), sum(one.runs for one in found)
    return f"{others} of {runs} runs were disturbed by other processes"


def processor() -> str:
    """By name, as /proc/cpuinfo has it."""
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else "a processor without a name"
