"""Figures 13 and 14 and Table 2: time in the allocator, in malloc, and of the program, beside the limit study."""

import itertools
import statistics
from dataclasses import replace

from annex_lab.sim.figures.cells import COUNT, SHARE, Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.mallacc import paper
from annex_lab.sim.figures.mallacc.common import ALLOCATOR, LIMIT, MACRO, MALLOC, POTENTIAL, UNIT, maker, saved, time
from annex_lab.sim.figures.mallacc.distribution import ENDLESS, FUNCTIONS, START, Make, cycles_within
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.values import AVERAGE, MEAN, Column, Missing, Results, Value, cells, in_panel, less, of, over

UNITS = "32 entries"
DEVIATION, CHANCE = "standard deviation over seeds", "p-value of no gain"


def _runs(choice: Choice) -> list[Spec]:
    made = []
    for name in choice.allocators:
        for hardware, settings in (("", ()), (UNIT, POTENTIAL), (UNIT, ()), (LIMIT, ())):
            made += each(maker(choice, name, hardware, settings), choice.of(MACRO), choice.seeds)
    return made


def _later(choice: Choice, name: str, metric: str, hardware: str, settings: tuple[str, ...] = ()) -> Value:
    """Cycles after the allocator's start, over those of the same allocator in software."""

    def after(make: Make) -> Value:
        return less(of(make, metric), cycles_within(make, FUNCTIONS["malloc"], START, ENDLESS))

    return over(after(maker(choice, name, hardware, settings)), after(maker(choice, name)))


def _of(metric: str, known: dict[str, float], limit: float | None):
    def made(choice: Choice, results: Results) -> list[Cell]:
        found = []
        for name, (taken, what) in itertools.product(choice.allocators, ((time, ""), (_later, ", after its start"))):
            columns = [
                Column("32 entries", taken(choice, name, metric, UNIT, POTENTIAL), known, paper.FROM),
                Column("16 entries", taken(choice, name, metric, UNIT)),
                Column("limit", taken(choice, name, metric, LIMIT), {MEAN: limit} if limit else {}, paper.FROM),
            ]
            for column in columns:
                found += cells(results, column, choice.of(MACRO), choice.seeds, in_panel(f"{name}{what}"))
        return found

    return made


READS = (
    "Cycles over those of the same allocator in software, without the kernel's; the paper has other workloads. After "
    f"its start: without calls of malloc of {START} cycles and more, one or two a run, in which the allocator makes "
    "itself ready; the paper's samples of long runs lack them."
)
FIGURE_13 = Figure(
    "13",
    "Time in the allocator",
    READS,
    _runs,
    _of(ALLOCATOR, {MEAN: paper.ALLOCATOR}, paper.ALLOCATOR_LIMIT),
    unit="over software",
)
FIGURE_14 = Figure(
    "14",
    "Time in malloc",
    f"{READS} Of its xapian and xalan it says that over 40 % are gone.",
    _runs,
    _of(MALLOC, {MEAN: paper.MALLOC} | paper.MALLOC_OF, None),
    unit="over software",
)


def _significance(choice: Choice, results: Results, gone: Value, workload: str, place: tuple[str, str]) -> list[Cell]:
    """Over the seeds: the deviation of what is gone, and the p-value of a test of whether nothing or less is."""
    name, series = place
    deviation = Cell(
        f"{name}: {DEVIATION}",
        workload,
        series,
        None,
        paper=paper.PROGRAM_DEVIATION.get(workload) if series == UNITS else None,
        paper_from=paper.PROGRAM_FROM,
        unit=SHARE,
    )
    chance = replace(
        deviation,
        panel=f"{name}: {CHANCE}",
        paper=paper.PROGRAM_P_VALUE.get(workload) if series == UNITS else None,
        unit=COUNT,
    )
    try:
        by_seed = [gone(results, workload, seed) for seed in choice.seeds]
        if len(by_seed) < 2 or len(set(by_seed)) == 1:
            raise Missing("all seeds are alike" if len(by_seed) > 1 else "of one seed")
    except Missing as why:
        return [replace(cell, note=str(why)) for cell in (deviation, chance)]
    from scipy.stats import ttest_1samp  # here: most commands need none of it, and start sooner without

    found = ttest_1samp(by_seed, 0, alternative="greater")
    return [replace(deviation, ours=statistics.stdev(by_seed)), replace(chance, ours=float(f"{found.pvalue:.2g}"))]


def _program(choice: Choice, results: Results) -> list[Cell]:
    found, beside = [], []
    for name in choice.allocators:
        for series, hardware, settings, known in (
            (UNITS, UNIT, POTENTIAL, paper.PROGRAM),
            ("limit", LIMIT, (), {}),
        ):
            gone = saved(time(choice, name, "cycles", hardware, settings))
            column = Column(series, gone, known, paper.PROGRAM_FROM, AVERAGE, unit=SHARE)
            found += cells(results, column, choice.of(MACRO), choice.seeds, in_panel(name))
            for workload in choice.of(MACRO):
                beside += _significance(choice, results, gone, workload, (name, series))
    return found + sorted(beside, key=lambda cell: cell.panel)


TABLE_2 = Figure(
    "table2",
    "Time of the whole program",
    "What of the program's cycles is gone, the kernel's among them. The paper's are speedups, of its programs in which "
    "they are significant; its xapian here is that on abstracts. Its deviations are of runs that differ by luck; ours "
    "are of seeds, which move where threads start, and a program of one thread has no luck in it: where all seeds are "
    "alike there is no deviation, and no test. The test is Student's, one-sided, of the seeds' own gains, each over "
    "software with that seed.",
    _runs,
    _program,
    unit="share of the program's time",
    kind="Table",
    pictured=lambda panel: not panel.endswith((DEVIATION, CHANCE)),
)
