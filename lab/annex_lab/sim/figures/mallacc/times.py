"""Figures 13 and 14 and Table 2: time in the allocator, in malloc, and of the program, beside the limit study."""

import itertools

from annex_lab.sim.figures.cells import SHARE, Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.mallacc import paper
from annex_lab.sim.figures.mallacc.common import ALLOCATOR, LIMIT, MACRO, MALLOC, POTENTIAL, UNIT, maker, saved, time
from annex_lab.sim.figures.mallacc.distribution import ENDLESS, FUNCTIONS, START, Make, cycles_within
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.values import AVERAGE, MEAN, Column, Results, Value, cells, in_panel, less, of, over


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


def _program(choice: Choice, results: Results) -> list[Cell]:
    found = []
    for name in choice.allocators:
        for series, hardware, settings, known in (
            ("32 entries", UNIT, POTENTIAL, paper.PROGRAM),
            ("limit", LIMIT, (), {}),
        ):
            gone = saved(time(choice, name, "cycles", hardware, settings))
            column = Column(series, gone, known, paper.PROGRAM_FROM, AVERAGE, unit=SHARE)
            found += cells(results, column, choice.of(MACRO), choice.seeds, in_panel(name))
    return found


TABLE_2 = Figure(
    "table2",
    "Time of the whole program",
    "What of the program's cycles is gone, the kernel's among them. The paper's are speedups, of its programs in which "
    "they are significant; its xapian here is that on abstracts.",
    _runs,
    _program,
    unit="share of the program's time",
    kind="Table",
)
