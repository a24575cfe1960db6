"""Exgen-Malloc's claims: the speed over dlmalloc and the memory over mimalloc, of one program and in the mean."""

import itertools
from dataclasses import replace

from annex_lab import intervals, stats
from annex_lab.sim.figures import measured
from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.exgen import paper
from annex_lab.sim.figures.figure import Choice, Figure
from annex_lab.sim.figures.host import Measurement
from annex_lab.sim.figures.values import MEAN, Results

OURS = "annex-solo"
MIMALLOCS = ("mimalloc2", "mimalloc3")
ALLOCATORS = (OURS, "dlmalloc", *MIMALLOCS, "glibc")
NAME = "mimalloc-bench"
# What mimalloc-bench has that never starts a thread, and what it has of several, which here is one beside the first; by
# the names of what stands for them.
ALONE = ("cfrac", "espresso", "ghostscript", "lua-tables", "z3", "glibc-simple", "malloc-large")
STARTED = (
    *("alloc-test", "cache-scratch", "cache-thrash", "glibc-thread", "larson", "mstress", "rptest"),
    *("sh6bench", "sh8bench"),
)
BENCH = (*ALONE, *STARTED)
MEAN_ALONE = f"{MEAN}, no thread started"
SCALE = 0.2  # of annex-lab bench: a round of all takes less than two minutes
SCALES = dict.fromkeys(BENCH, SCALE)
SPEED, MEMORY = f"speed of {OURS} over each, CPU time", f"peak memory of {OURS} over each's"


def _others(choice: Choice) -> list[str]:
    return [name for name in choice.allocators if name != OURS]


def _measurements(choice: Choice) -> list[Measurement]:
    workloads, others = tuple(choice.of(BENCH)), _others(choice)
    if not workloads or not others or not choice.among([OURS]):
        return []
    return [Measurement(workloads, (OURS, *others), choice.rounds, SCALE * choice.scale_factor)]


def _series(
    results: Results, measurement: Measurement, place: tuple[str, str], ratio: tuple[str, str], metric: str
) -> list[Cell]:
    """A row for each program."""
    (panel, series), (over, under) = place, ratio
    return [
        measured.ratio(results, measurement, Cell(panel, program, series, None), program, over, [under], metric)
        for program in measurement.programs
    ]


def _means(programs: list[Cell], known: float | None, disturbed: str) -> list[Cell]:
    """Of all that there are, with the paper's; and of those that start no thread, where others do."""
    alone = [cell for cell in programs if cell.row in ALONE]
    means = [_mean(programs, MEAN, known, disturbed)]
    return [*means, _mean(alone, MEAN_ALONE, None, disturbed)] if 0 < len(alone) < len(programs) else means


def _mean(programs: list[Cell], row: str, known: float | None, disturbed: str) -> Cell:
    there = [cell.ours for cell in programs if cell.ours is not None]
    mean = Cell(programs[0].panel, row, programs[0].series, None, paper=known, paper_from="abstract" if known else "")
    if not there:
        return replace(mean, note=programs[0].note)
    low, high = intervals.of_geometric_mean(there)
    of_some = f"of {len(there)} of {len(programs)}" if len(there) < len(programs) else ""
    note = "; ".join(filter(None, [of_some, disturbed]))
    return replace(mean, ours=stats.geometric_mean(there), low_95=low, high_95=high, note=note)


def _known(panel: str, other: str) -> float | None:
    if panel == SPEED:
        return paper.SPEED[NAME] if other == paper.SPEED_OVER else None
    return 1 - paper.MEMORY_SAVED[NAME] if other in MIMALLOCS else None


def _cells(choice: Choice, results: Results) -> list[Cell]:
    found = []
    for measurement in _measurements(choice):
        for panel, other in itertools.product((SPEED, MEMORY), _others(choice)):
            ratio, metric = ((other, OURS), "cpu_s") if panel == SPEED else ((OURS, other), "peak_rss_kib")
            programs = _series(results, measurement, (panel, other), ratio, metric)
            found += [*programs, *_means(programs, _known(panel, other), measured.disturbed(results, measurement))]
    return found


MIMALLOC_BENCH = Figure(
    NAME,
    "A flavour for one thread, over dlmalloc and over mimalloc",
    "Measured on this machine, not simulated: annex-lab bench, whose allocators take turns. A number is the ratio of "
    "medians over the rounds; in parentheses are the lowest and the highest round instead of seeds. Exgen-Malloc's "
    "source is not public: the paper's number is its own allocator's, ours is Annex's flavour for one thread. The "
    "programs are those of mimalloc-bench that the lab has, with one thread each; from alloc-test on it is one beside "
    "the first, which waits for it, and there Annex's flavour for one thread goes on as shared. Which programs the "
    "paper ran, and under which mimalloc, its abstract doesn't say. dlmalloc is 2.8.6, its last version.",
    cells=_cells,
    measurements=_measurements,
    unit="over each",
    kind="Claim",
)
SPEC = Figure(
    "spec",
    "SPEC CPU2017",
    "",
    missing=lambda: (
        f"SPEC CPU2017 is not free (the paper: {paper.SPEED['spec']} times dlmalloc's speed, "
        f"{paper.MEMORY_SAVED['spec']:.1%} less memory than mimalloc); docs/results-single.md has real programs instead"
    ),
    kind="Claim",
)
REDIS = Figure(
    "redis",
    "redis-benchmark",
    "",
    missing=lambda: (
        f"redis has threads beside the first, in which a flavour for one thread locks (the paper: "
        f"{paper.SPEED['redis']} times dlmalloc's speed, {paper.MEMORY_SAVED['redis']:.1%} less memory than mimalloc); "
        "annex-lab bench --workloads redis measures it under any allocator; a server and its client, two processes, "
        "can't be simulated"
    ),
    kind="Claim",
)
CLAIMS = [MIMALLOC_BENCH, SPEC, REDIS]
