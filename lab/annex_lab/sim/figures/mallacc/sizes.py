"""Figure 17: what the size of the malloc cache does."""

from collections.abc import Callable

from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.mallacc.common import LIMIT, MICRO, UNIT, maker, papers_own
from annex_lab.sim.figures.mallacc.distribution import FUNCTIONS, START, cycles_within
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.values import Column, Results, Value, cells, in_row, of, over

ENTRIES = (2, 3, 4, 6, 7, 8, 10, 12, 14, 16, 20, 23, 24, 28, 32)


def _settings(entries: int) -> tuple[str, ...]:
    return (f"mallacc.entries={entries}",)


def _runs(choice: Choice) -> list[Spec]:
    made = []
    for name in papers_own(choice):
        for workload in choice.of(MICRO):
            made += each(maker(choice, name), [workload], choice.seeds)
            made += each(maker(choice, name, LIMIT), [workload], choice.seeds)
            for entries in ENTRIES:
                made += each(maker(choice, name, UNIT, _settings(entries)), [workload], choice.seeds)
    return made


def _time(choice: Choice, make: Callable[[str, int], Spec], name: str) -> Value:
    """In malloc, after the allocator's start, over software's."""
    mine, software = (cycles_within(one, FUNCTIONS["malloc"], 0, START) for one in (make, maker(choice, name)))
    return over(mine, software)


def _cells(choice: Choice, results: Results) -> list[Cell]:
    found = []
    for name in papers_own(choice):
        for workload in choice.of(MICRO):
            for entries in ENTRIES:
                settings = _settings(entries)
                unit, limit = maker(choice, name, UNIT, settings), maker(choice, name, LIMIT)
                columns = [
                    ("Mallacc", _time(choice, unit, name)),
                    ("limit", _time(choice, limit, name)),
                    ("look-ups that hit", of(unit, "mallacc_lookup_hits")),
                ]
                for series, value in columns:
                    place = in_row(str(entries), workload)
                    found += cells(results, Column(series, value), [workload], choice.seeds, place)[:1]
    return found


FIGURE_17 = Figure(
    "17",
    "The malloc cache's entries",
    "Time in malloc over that of software, by the number of entries, and the part of look-ups that hit; without the "
    f"allocator's start, a call or two of {START} cycles and more. tp, tp-small and sized-deletes begin with 8 blocks "
    "of each size on their lists.",
    _runs,
    _cells,
    drawn="lines",
    unit="over software",
)
