"""Figure 6: how few size classes most calls use."""

import numpy as np

from annex_lab.sim.figures.cells import COUNT, SHARE, Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.mallacc import paper
from annex_lab.sim.figures.mallacc.common import MACRO, POTENTIAL, UNIT, maker
from annex_lab.sim.figures.metrics import BLOCKS_ASKED
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.values import AVERAGE, Column, Missing, Results, Value, cells, in_panel, in_row

CLASSES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 30, 40)
LEVELS = {"50 %": 0.5, "90 %": 0.9, "99 %": 0.99, "all": 1.0}
NEEDED = "size classes that serve so many of the calls"


def _runs(choice: Choice) -> list[Spec]:
    made = []
    for name in choice.allocators:
        made += each(maker(choice, name, UNIT, POTENTIAL), choice.of(MACRO), choice.seeds)
    return made


def _covered(results: Results, spec: Spec) -> np.ndarray:
    """The part of mallocs that the most used class serves, the two most used, and so on."""
    blocks = np.sort(np.array(results.get(spec, BLOCKS_ASKED), dtype=float))[::-1]
    if blocks.sum() == 0:
        raise Missing("no size class was asked for")
    return blocks.cumsum() / blocks.sum()


def _share(choice: Choice, name: str, classes: int) -> Value:
    make = maker(choice, name, UNIT, POTENTIAL)

    def value(results: Results, workload: str, seed: int) -> float:
        covered = _covered(results, make(workload, seed))
        return float(covered[min(classes, len(covered)) - 1])

    return value


def _needed(choice: Choice, name: str, level: float) -> Value:
    make = maker(choice, name, UNIT, POTENTIAL)
    return lambda results, workload, seed: float(
        1 + np.searchsorted(_covered(results, make(workload, seed)), level - 1e-9)
    )


def _cells(choice: Choice, results: Results) -> list[Cell]:
    found = []
    for name in choice.allocators:
        for classes in CLASSES:
            for workload in choice.of(MACRO):
                known = paper.COVERED.get(workload, {}).get(classes)
                column = Column(
                    workload,
                    _share(choice, name, classes),
                    {workload: known} if known else {},
                    paper.COVERED_FROM,
                    unit=SHARE,
                )
                found += cells(results, column, [workload], choice.seeds, in_row(str(classes), name))[:1]
        for series, level in LEVELS.items():
            known = {
                workload: classes
                for workload, of in paper.COVERED.items()
                for classes, share in of.items()
                if share == level
            }
            column = Column(series, _needed(choice, name, level), known, paper.COVERED_FROM, AVERAGE, unit=COUNT)
            found += cells(results, column, choice.of(MACRO), choice.seeds, in_panel(f"{name}: {NEEDED}"))[:-1]
    return found


FIGURE_6 = Figure(
    "6",
    "Size classes by use",
    "The part of mallocs that the most used size classes serve, by their number. Calls that find their class by the "
    "marked look-up, which large blocks, calloc and realloc do not. Of the paper's programs but xalan's, less than 5 "
    "classes serve 90 %.",
    _runs,
    _cells,
    drawn="lines",
    unit="share of calls",
    pictured=lambda panel: not panel.endswith(NEEDED),
)
