"""Figures 1, 2, 15 and 16: how the time in malloc lies over the lengths of its calls."""

import itertools

from annex_lab.sim.figures.cells import COUNT, RATIO, SHARE, Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.mallacc import paper
from annex_lab.sim.figures.mallacc.common import MACRO, MALLOC, WITH_SOFTWARE, maker
from annex_lab.sim.figures.mallacc.distribution import (
    ENDLESS,
    SLOW,
    START,
    halves,
    mean,
    median,
    quarters,
    share_of_calls,
    share_of_time,
)  # fmt: skip
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.values import Column, Results, Value, cells, in_row, of, over

PERL, XAPIAN, XALAN = "perl-hashes", "xapian", "xalan"
LATER = (0, START)
CUMULATIVE = (16, 24, 32, 48, 64, 80, 100, 128, 256, 512, 1024, 2048, 4096, START, 65536, 1 << 20)
BY_LENGTH = "share of the time in malloc, by the cycles of a call"
CALLS = "its calls"
LENGTHS = (
    "A row is of calls that take so many cycles or more, and less than the next row's; the kernel's are left out. "
    f"Shares are of calls below {START} cycles: longer are one or two calls of a run, the allocator's start, which the "
    "paper's samples of long runs lack."
)


def _of_one(results: Results, workload: str, choice: Choice, place: tuple[str, str], column: Column) -> list[Cell]:
    """Without a mean: there is one workload."""
    panel, row = place
    return cells(results, column, [workload], choice.seeds, in_row(row, panel))[:1]


def _steps(edges: list[int]) -> list[tuple[int, int]]:
    return list(itertools.pairwise([*edges, START]))


# --- 1 --------------------------------------------------------------------------------------------------------------


def _perl_runs(choice: Choice) -> list[Spec]:
    return [spec for name in choice.allocators for spec in each(maker(choice, name), choice.of([PERL]), choice.seeds)]


def _perl(choice: Choice, results: Results) -> list[Cell]:
    found = []
    for name in choice.allocators if choice.of([PERL]) else ():
        make = maker(choice, name)
        for low, high in _steps(halves(11)):
            column = Column(name, share_of_time(make, low, high, of=LATER), unit=SHARE)
            found += _of_one(results, PERL, choice, (BY_LENGTH, str(low)), column)
    for name in choice.allocators if choice.of([PERL]) else ():
        make = maker(choice, name)
        rows: list[tuple[str, Value, str, float | None]] = [
            ("median, cycles", median(make), COUNT, None),
            (f"mean of those of {SLOW} to {START} cycles", mean(make, SLOW, START), RATIO, None),
            ("that over the median", over(mean(make, SLOW, START), median(make)), RATIO, paper.MISS_OVER_HIT),
            (f"share of time in calls from {START} cycles on", share_of_time(make, START, ENDLESS), SHARE, None),
        ]
        for row, value, unit, known in rows:
            column = Column(name, value, {PERL: known} if known else {}, paper.MISS_FROM, unit=unit)
            found += _of_one(results, PERL, choice, (CALLS, row), column)
    return found


FIGURE_1 = Figure(
    "1",
    "Time in malloc over the length of a call, perl",
    f"perl-hashes, in software. {LENGTHS} The paper's peaks are hits in the thread cache, the central list, and spans. "
    f"A call of {SLOW} cycles or more is taken for one that missed in the thread cache.",
    _perl_runs,
    _perl,
    drawn="lines",
    unit="share of time",
    pictured=lambda panel: panel == BY_LENGTH,
)

# --- 2 --------------------------------------------------------------------------------------------------------------


def _software_runs(choice: Choice) -> list[Spec]:
    return [spec for name in choice.allocators for spec in each(maker(choice, name), choice.of(MACRO), choice.seeds)]


def _cumulative(choice: Choice, results: Results) -> list[Cell]:
    found = []
    whole = (0, ENDLESS)
    for name, (counted, what) in itertools.product(choice.allocators, ((whole, ""), (LATER, ", after its start"))):
        for below in CUMULATIVE if counted == whole else CUMULATIVE[: CUMULATIVE.index(START) + 1]:
            for workload in choice.of(MACRO):
                known = below == paper.SHORT and workload in paper.SHORT_OF
                value = share_of_time(maker(choice, name), 0, below, of=counted)
                column = Column(
                    workload, value, {workload: paper.SHORT_SHARE} if known else {}, paper.SHORT_FROM, unit=SHARE
                )
                found += _of_one(results, workload, choice, (f"{name}{what}", str(below)), column)
    return found


FIGURE_2 = Figure(
    "2",
    "The share of the time in malloc that is in short calls",
    "Of the time in malloc, what is in calls of less than so many cycles; in software, without the kernel's. Calls "
    f"from {START} cycles on are one or two a run, the allocator's start, which the paper's samples of long runs lack.",
    _software_runs,
    _cumulative,
    drawn="lines",
    unit="share of time",
)

# --- 15, 16 ---------------------------------------------------------------------------------------------------------


def _of_workload(name: str, workload: str, fast: tuple[int, int]) -> Figure:
    def runs(choice: Choice) -> list[Spec]:
        made = []
        for allocator, (hardware, settings) in itertools.product(choice.allocators, WITH_SOFTWARE.values()):
            made += each(maker(choice, allocator, hardware, settings), choice.of([workload]), choice.seeds)
        return made

    def made(choice: Choice, results: Results) -> list[Cell]:
        found = []
        for allocator in choice.allocators if choice.of([workload]) else ():
            software = maker(choice, allocator)
            cases = {case: maker(choice, allocator, *how) for case, how in WITH_SOFTWARE.items()}
            for (low, high), (case, make) in itertools.product(_steps(quarters(8)), cases.items()):
                column = Column(case, share_of_time(make, low, high, software, LATER), unit=SHARE)
                found += _of_one(results, workload, choice, (allocator, str(low)), column)
            for case, make in cases.items():
                known = paper.MEDIAN if case == "32 entries" else {}
                low, high = fast
                columns = {
                    "median, cycles": Column(case, median(make), known, paper.MEDIAN_FROM, unit=COUNT),
                    f"mean of those below {paper.SHORT} cycles": Column(case, mean(make, 0, paper.SHORT)),
                    f"share of calls of {low} to {high - 1} cycles": Column(
                        case, share_of_calls(make, low, high), unit=SHARE
                    ),
                    "time after the start, over software's": Column(case, share_of_time(make, *LATER, software, LATER)),
                    "all time, over software's": Column(
                        case,
                        over(of(make, MALLOC), of(software, MALLOC)),
                        paper.MALLOC_OF if case == "32 entries" else {},
                        paper.FROM,
                    ),
                }
                for row, column in columns.items():
                    found += _of_one(results, workload, choice, (f"{allocator}: {CALLS}", row), column)
        return found

    return Figure(
        name,
        f"Time in malloc over the length of a call, {workload}",
        f"Shares of the time that software takes, so that a column adds up to what is left of it. {LENGTHS}",
        runs,
        made,
        drawn="lines",
        unit="share of software's time",
        pictured=lambda panel: not panel.endswith(CALLS),
    )


FIGURE_15 = _of_workload("15", XAPIAN, (20, 40))  # 6.1: virtually all calls of the baseline
FIGURE_16 = _of_workload("16", XALAN, (20, 70))  # 6.1: the next large spike
