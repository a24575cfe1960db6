"""In no paper: how much less a unit could gain if the program's working set were smaller than the paper's."""

from dataclasses import replace

from annex_lab.sim.figures import metrics
from annex_lab.sim.figures.cells import SHARE, Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.speedmalloc.common import ANNEX, MANY, SIGNALS, SUPPORT, speedup
from annex_lab.sim.figures.values import AVERAGE, Column, Results, Value, cells, in_row, of, over

WORKLOAD = "gap-bfs"
VERTICES = 65536  # the paper's, and the workload's own
SIZES = (655, 4096, 16384, VERTICES)
PANEL = "speedup over Annex in software"
FREE = (*SIGNALS, "support_core.link=0")
SERIES = {
    "calls cost nothing beside the signals": SIGNALS,
    "calls cost nothing": FREE,
}
PARTS = "of the main cores' busy cycles in software"


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


def _parts(choice: Choice) -> dict[str, Value]:
    """What of the busy cycles in software may be saved: the calls, and what they do to the caches."""
    software, free = choice.maker(ANNEX, MANY), choice.maker(ANNEX, MANY, SUPPORT, FREE)
    busy = of(software, "busy_main")
    return {
        "in calls": over(of(software, metrics.CALL_CYCLES), busy),
        "stalls of misses of the L2": over(of(software, "l2_stalls_main"), busy),
        "the same where calls cost nothing": over(of(free, "l2_stalls_main"), busy),
    }


def _cells(choice: Choice, results: Results) -> list[Cell]:
    found = []
    for vertices in SIZES:
        sized = _sized(choice, vertices)
        columns = {
            PANEL: [
                Column(series, speedup(sized, ANNEX, ANNEX, MANY, SUPPORT, settings))
                for series, settings in SERIES.items()
            ],
            PARTS: [Column(series, value, mean=AVERAGE, unit=SHARE) for series, value in _parts(sized).items()],
        }
        for panel, of_panel in columns.items():
            for column in of_panel:
                place = in_row(f"{vertices:,} vertices", panel)
                found += cells(results, column, choice.of([WORKLOAD]), choice.seeds[:1], place)[:-1]
    return sorted(found, key=lambda cell: (PANEL, PARTS).index(cell.panel))


WORKING_SETS = Figure(
    "working-sets",
    "What calls cost, by the size of the working set",
    "gap-bfs with 16 threads, one seed, on graphs of up to the paper's 64k vertices of degree 100, which all other "
    "figures have. Calls that cost nothing are the bound for whatever serves them; there all threads have one heap. "
    "Stalls are counted once, in the program's code and in calls.",
    _runs,
    _cells,
    unit="speedup over software, or share",
    pictured=lambda panel: panel == PANEL,
    kind="",
)
