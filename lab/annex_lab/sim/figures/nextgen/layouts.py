"""3.1.2's expectation, tried: metadata together with the blocks, or apart, on one core and on a support core.

Together is Annex, whose free blocks are linked through the blocks; apart is the same slabs with a bitmap of their free
blocks beside them (src/experiments/segregated.h), which takes no lock and so is for one thread, or for a support core.
"""

from annex_lab.sim.figures import metrics
from annex_lab.sim.figures.cells import COUNT, Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.speedmalloc import common
from annex_lab.sim.figures.values import AVERAGE, Column, Results, Value, cells, in_panel, of, over

TOGETHER, APART = "annex", "annex-segregated"
WORKLOADS = ("espresso", "cfrac", "perl-hashes", "sqlite3", "larson", "sh6bench", "mstress", "gap-bfs")
SCALES = {name: common.SCALES[name] for name in WORKLOADS}
PLACES = {"one core": "", "support core": common.SUPPORT}
CYCLES = "cycles, apart over together"
LINES = "lines that the support core takes out of the program's caches, a call"


def _runs(choice: Choice) -> list[Spec]:
    workloads = choice.of(WORKLOADS)
    return [
        spec
        for allocator in (TOGETHER, APART)
        for hardware in PLACES.values()
        for spec in each(choice.maker(allocator, 1, hardware), workloads, choice.seeds)
    ]


def _lines(choice: Choice, allocator: str) -> Value:
    return of(choice.maker(allocator, 1, common.SUPPORT), metrics.SUPPORT_TRANSFERS)


def _cells(choice: Choice, results: Results) -> list[Cell]:
    found = []
    for where, hardware in PLACES.items():
        cycles = (of(choice.maker(name, 1, hardware), "cycles") for name in (APART, TOGETHER))
        column = Column(where, over(*cycles))
        found += cells(results, column, choice.of(WORKLOADS), choice.seeds, in_panel(CYCLES))
    for layout, allocator in (("together", TOGETHER), ("apart", APART)):
        column = Column(layout, _lines(choice, allocator), mean=AVERAGE, unit=COUNT)
        found += cells(results, column, choice.of(WORKLOADS), choice.seeds, in_panel(LINES))
    return found


LAYOUTS = Figure(
    "3.1.2",
    "Metadata together with the blocks, or apart",
    "One thread. The paper expects that neither layout is best everywhere, and that apart suits an allocator on a core "
    "of its own; it has no numbers. Together is Annex, whose lists of free blocks go through the blocks; apart is the "
    "same slabs with a bitmap beside them, called a block at a time (annex-segregated). Their fast paths are not "
    "equally long, so that the ratio on one core is not the layout's alone; what the layout does for a support core is "
    "the difference between the two series, and the lines below them.",
    _runs,
    _cells,
    unit="over together",
    kind="Section",
    pictured=lambda panel: panel == CYCLES,
)
