"""In no paper: what is left for one unit to gain beside another. Annex with Mallacc, on a support core, with both."""

from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.figure import Choice, Figure
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.speedmalloc.common import SUPPORT, cells_of_variants, runs_of_variants
from annex_lab.sim.figures.speedmalloc.density import thinned
from annex_lab.sim.figures.values import Results

ALLOCATOR = "annex-marked"
MALLACC = ("mallacc.entries=32",)
BIG = "ic-malloc-queues"
STACKS = {
    "Mallacc": ("", MALLACC),
    "support core": (SUPPORT, ()),
    "support core with Mallacc": (SUPPORT, MALLACC),
    "idle main core": (BIG, ()),
    "idle main core with Mallacc": (BIG, MALLACC),
}
DENSITIES = {
    "workloads as they are, over Annex in software": lambda choice: choice,
    "calls as dense as in SpeedMalloc's Table 3, over Annex in software": thinned,
}


def _runs(choice: Choice) -> list[Spec]:
    return [
        spec for density in DENSITIES.values() for spec in runs_of_variants(density(choice), ALLOCATOR, STACKS.values())
    ]


def _cells(choice: Choice, results: Results) -> list[Cell]:
    found = []
    for panel, density in DENSITIES.items():
        found += cells_of_variants(density(choice), results, ALLOCATOR, STACKS, panel)
    return found


STACKED = Figure(
    "stacked",
    "Mallacc, a support core, and both",
    "Annex with Mallacc's markers and 16 threads. Mallacc is in each main core, or, of calls that run elsewhere, in "
    "the core that runs them: the support core, or an idle main core that is asked by signals and hardware queues.",
    _runs,
    _cells,
    unit="speedup over software",
    kind="",
)
