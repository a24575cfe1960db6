"""In no paper: how much less a unit could gain if the program's working set were smaller than the paper's."""

from dataclasses import replace

from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.speedmalloc.common import ANNEX, MANY, SIGNALS, SUPPORT, speedup
from annex_lab.sim.figures.values import Column, Results, cells, in_row

WORKLOAD = "gap-bfs"
VERTICES = 65536  # the paper's, and the workload's own
SIZES = (655, 4096, 16384, VERTICES)
PANEL = "speedup over Annex in software"
SERIES = {
    "calls cost nothing beside the signals": SIGNALS,
    "calls cost nothing": (*SIGNALS, "support_core.link=0"),
}


def _sized(choice: Choice, vertices: int) -> Choice:
    """As many searches, in a graph of that size."""
    if vertices == VERTICES:
        return choice  # with the runs of other figures
    return replace(choice, sizes={**choice.sizes, WORKLOAD: (f"--vertices={vertices}",)})


def _runs(choice: Choice) -> list[Spec]:
    return [
        spec
        for vertices in SIZES
        for hardware, settings in (("", ()), *((SUPPORT, settings) for settings in SERIES.values()))
        for spec in each(
            _sized(choice, vertices).maker(ANNEX, MANY, hardware, settings), choice.of([WORKLOAD]), choice.seeds[:1]
        )
    ]


def _cells(choice: Choice, results: Results) -> list[Cell]:
    found = []
    for vertices in SIZES:
        sized = _sized(choice, vertices)
        for series, settings in SERIES.items():
            column = Column(series, speedup(sized, ANNEX, ANNEX, MANY, SUPPORT, settings))
            place = in_row(f"{vertices:,} vertices", PANEL)
            found += cells(results, column, choice.of([WORKLOAD]), choice.seeds[:1], place)[:-1]
    return found


WORKING_SETS = Figure(
    "working-sets",
    "What calls cost, by the size of the working set",
    "gap-bfs with 16 threads, one seed, on graphs of up to the paper's 64k vertices of degree 100, which all other "
    "figures have. Calls that cost nothing are the bound for whatever serves them.",
    _runs,
    _cells,
    unit="speedup over software",
    kind="",
)
