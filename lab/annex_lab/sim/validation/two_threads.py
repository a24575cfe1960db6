"""Time with two threads: SpeedMalloc's ten workloads on this machine's two CPUs and on as many simulated cores.

Time is by the program's own clock, around its work, on both sides. Ranks are of allocators within a program, as in
docs/many-cores.md: the question is which allocator a program is fastest with.
"""

import dataclasses
import os
import statistics
from dataclasses import dataclass

from annex_lab import intervals, stats
from annex_lab.sim import host, run
from annex_lab.sim.validation import absolute, against_host, agreement, timed
from annex_lab.sim.validation.section import Section
from annex_lab.sim.validation.validator import PLAIN_STRINGS, Validator

BASE = "annex"
OTHERS = ("glibc", "jemalloc", "mimalloc3", "snmalloc", "tcmalloc")
ALLOCATORS = (BASE, *OTHERS)
THREADS = 2
FEWEST_ROUNDS = 5
# How much of a program, and how large its structures are, where the papers' would take a simulation too long.
PROGRAMS = (
    ("larson", 0.01, ()),
    ("xmalloc", 0.02, ()),
    ("cache-scratch", 0.01, ()),
    ("sh6bench", 0.01, ()),
    ("sh8bench", 0.01, ()),
    ("mstress", 1, ("--items=8000",)),
    ("alloc-test", 0.01, ()),
    ("gap-bfs", 1, ("--vertices=4096",)),
    ("gap-bc", 1, ("--vertices=1024",)),
    ("nas-dc", 1, ("--tuples=4000",)),
)
TIME_BOUND = 0.2
CELLS_WITHIN = 0.9
RANK_BOUND = 0.8


@dataclass(frozen=True)
class Found:
    """Of one program, seconds by allocator."""

    program: str
    measured: dict[str, float]
    simulated: dict[str, float]

    def ratios(self, allocator: str) -> tuple[float, float]:
        """To the base's time: measured, simulated."""
        return tuple(times[allocator] / times[BASE] for times in (self.measured, self.simulated))

    def error(self, allocator: str) -> float:
        measured, simulated = self.ratios(allocator)
        return simulated / measured - 1

    def time(self) -> float:
        """Simulated time for each of the machine's: the geometric mean over its allocators."""
        return stats.geometric_mean([self.simulated[name] / self.measured[name] for name in ALLOCATORS])

    def rank(self) -> float:
        """Of all allocators, by their ratios as the table shows them."""
        rounded = [[round(value, 2) for value in self.ratios(name)] for name in ALLOCATORS]
        return intervals.rank_correlation(*zip(*rounded, strict=True))


def section(all_found: list[Found], how: str) -> Section:
    table = Section(
        "Two threads",
        f"SpeedMalloc's ten workloads with {THREADS} threads, on this machine's two CPUs and on the preset `host`: "
        f"time by the program's own clock, over {BASE}'s. Each cell: measured, simulated, and the error. {how} Rank: "
        f"Spearman's, of the program's six allocators with {BASE} as 1, by the figures shown: which allocator a "
        "program is fastest with, as in [many-cores.md](many-cores.md). Time: simulated for each of the machine's, the "
        f"mean (geometric) over the allocators. Bounds: time within {100 * TIME_BOUND:.0f} % and rank at least "
        f"{RANK_BOUND} for each program; error at most {100 * TIME_BOUND:.0f} % in {100 * CELLS_WITHIN:.0f} of 100 "
        "cells.",
        ["program", *OTHERS, "time", "", "rank", ""],
    )
    errors = []
    for found in all_found:
        cells = []
        for name in OTHERS:
            measured, simulated = found.ratios(name)
            errors.append(found.error(name))
            cells.append(f"{measured:.2f} {simulated:.2f} ({100 * errors[-1]:+.0f} %)")
        time, rank = found.time(), found.rank()
        table.rows.append(
            [
                found.program,
                *cells,
                f"{time:.2f}",
                table.verdict(abs(time - 1) <= TIME_BOUND, f"{found.program}: time {time:.2f}"),
                f"{rank:.2f}",
                table.verdict(rank >= RANK_BOUND, f"{found.program}: rank {rank:.2f}"),
            ]
        )
    within = agreement.share_within(errors, TIME_BOUND)
    verdict = table.verdict(within >= CELLS_WITHIN, f"{100 * within:.0f} % of cells within {100 * TIME_BOUND:.0f} %")
    shown = f"{100 * within:.0f} % of {len(errors)}"
    table.rows.append(["**cells within bound**", shown, *[""] * (len(OTHERS) - 1), "", "", "", verdict])
    return table


def cannot() -> str | None:
    if len(os.sched_getaffinity(0)) < THREADS:
        return f"there are no {THREADS} CPUs here"
    return absolute.cannot()


def collect(validator: Validator, name: str, who: run.Guest, measured: timed.Rounds, machine: str) -> Found:
    same = dataclasses.replace(who, told_clock=host.tells_clock())
    results = validator.each(lambda one: simulated_seconds(validator, same, one, machine), ALLOCATORS)
    return Found(
        name,
        {one: statistics.median(run.own_s for run in runs) for one, runs in measured.of.items()},
        dict(zip(ALLOCATORS, results, strict=True)),
    )


def simulated_seconds(validator: Validator, who: run.Guest, allocator: str, machine: str, seed: int = 1) -> float:
    """By the program's own clock; a program that says nothing is timed from start to end."""
    results = validator.simulate(who, machine, allocator, PLAIN_STRINGS, seed, printed=True)
    line = timed.line_of(results["output"])
    return line["seconds"] if line else results["cycles"] / (results["machine"]["ghz"] * 1e9)


def of_two_threads(validator: Validator, rounds: int) -> Section:
    if why := cannot():
        return Section("Two threads", "Time on two CPUs, measured and simulated.", [], left_out=why)
    rounds = max(rounds, FEWEST_ROUNDS)
    machine = against_host.machine(validator, huge_pages=False)
    guests = {name: validator.workload(name, scale, THREADS, sizes) for name, scale, sizes in PROGRAMS}
    with against_host.without_huge_pages():  # all in one go, while the machine is quiet
        measured = {name: timed.rounds(who, ALLOCATORS, rounds) for name, who in guests.items()}
    all_found = [collect(validator, name, who, measured[name], machine) for name, who in guests.items()]
    return section(
        all_found,
        f"{timed.processor()}: medians of {rounds} interleaved rounds, without huge pages; "
        f"{timed.disturbed(measured.values())}.",
    )
