"""How long calls of malloc and free take: a program run once with native/latency.c in front of its allocator.

Every call is timed, so the program runs slower than in a sample: these runs give no times but those of the calls.
"""

import dataclasses
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from annex_lab import native, sample
from annex_lab.allocators import Allocator
from annex_lab.programs.model import Command, Context, Program, Server
from annex_lab.sample import LIBC, RunFailed

CALLS = ("malloc", "free")


@dataclass
class Recorded:
    """What the library left behind, times in nanoseconds."""

    overhead_ns: float = 0.0  # of reading the clock, taken off every call
    grain_ns: float = 0.0  # the clock moves by multiples of it
    served_by: dict[str, str] = field(default_factory=dict)  # the object whose malloc and free were called
    longest: dict[str, float] = field(default_factory=dict)
    histogram: dict[str, list[tuple[float, int]]] = field(default_factory=lambda: {call: [] for call in CALLS})


def parse(text: str) -> Recorded:
    """The library's file; raises ValueError where it is not whole."""
    lines = [line.split(" ") for line in text.splitlines()]
    if not lines or lines[0] != ["annex-latency", "1"] or lines[-1] != ["end"]:
        raise ValueError("not a whole file of latencies")
    recorded = Recorded()
    for line in lines[1:-1]:
        match line:
            case ["overhead_ns", value]:
                recorded.overhead_ns = float(value)
            case ["grain_ns", value]:
                recorded.grain_ns = float(value)
            case ["served", call, *name]:
                recorded.served_by[call] = " ".join(name)
            case ["max", call, value]:
                recorded.longest[call] = float(value)
            case [("malloc" | "free") as call, upper, count]:
                recorded.histogram[call].append((float(upper), int(count)))
    return recorded


def percentile(recorded: Recorded, call: str, share: str) -> float:
    """The time within which that share ("0.99") of the calls were done; 0 where there were none.

    A clock that moves by 10 ns at a time gives a call of 12 ns as 10 or 20: the calls of one reading are taken to be
    spread evenly over one grain around it. Where the grain is small beside the bucket that changes nothing.
    The share is text, since 0.999 as a binary fraction times 1000 calls is a little more than 999 of them.
    """
    histogram = recorded.histogram[call]
    needed = Fraction(share) * sum(count for _, count in histogram)
    for upper, count in histogram:
        if count and needed <= count:
            within = upper + recorded.grain_ns * (float(needed / count) - 0.5)
            return round(max(0.0, min(within, recorded.longest[call])), 3)
        needed -= count
    return 0.0


def summary(workload: str, allocator: str, recorded: Recorded) -> list[dict]:
    """The items of `latencies` in the results' schema, one a kind of call."""
    items = []
    for call in CALLS:
        histogram = recorded.histogram[call]
        items.append(
            {
                "workload": workload,
                "allocator": allocator,
                "call": call,
                "calls": sum(count for _, count in histogram),
                "p50_ns": percentile(recorded, call, "0.5"),
                "p99_ns": percentile(recorded, call, "0.99"),
                "p999_ns": percentile(recorded, call, "0.999"),
                "max_ns": recorded.longest.get(call, 0.0),
                "histogram": [[upper, count] for upper, count in histogram],
            }
        )
    return items


def _once(program: Program) -> Program:
    """The same, run once in a sample: a second run would overwrite what the first one leaves."""

    def run(context: Context) -> Command | Server:
        task = program.run(context)
        return dataclasses.replace(task, times=1) if isinstance(task, Command) else task

    return dataclasses.replace(program, run=run)


def _complaint(recorded: Recorded, expected: str) -> str | None:
    """A time must not go under another allocator's name."""
    for call in CALLS:
        served_by = Path(recorded.served_by.get(call, "?")).name
        if served_by != expected:
            return f"{call} is served by {served_by}"
    return None


def record(program: Program, context: Context, allocator: Allocator) -> Recorded:
    """One run; raises RunFailed where the program fails, leaves no file, or was served by another allocator."""
    behind = allocator.preload or (LIBC if program.brings_allocator else "")
    preload = ":".join(filter(None, [str(native.latency()), behind]))
    file = (context.scratch / "latencies").absolute()
    sample.run(_once(program), context, preload, {**allocator.env, "ANNEX_LATENCY_FILE": str(file)})
    try:
        recorded = parse(file.read_text())
    except (FileNotFoundError, ValueError):
        raise RunFailed("ended without leaving its latencies: static, replaced by exec, or ended by a signal") from None
    if why := _complaint(recorded, Path(behind or LIBC).name):
        raise RunFailed(why)
    return recorded


def measure(program: Program, context: Context, allocator: Allocator) -> list[dict]:
    """One run of the program as items of `latencies`: one for malloc, one for free; raises RunFailed."""
    return summary(program.name, allocator.name, record(program, context, allocator))
