"""Not in the paper: what its queues' order, mallocs before frees, does to Figure 17's ladder."""

from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.figure import Choice, Figure
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.speedmalloc.common import cells_of_variants, runs_of_variants
from annex_lab.sim.figures.values import Results

STEPS = {
    "signals": ("ic-malloc-signals", ()),
    "queues, mallocs first": ("ic-malloc-queues", ()),
    "queues, the oldest first": ("ic-malloc-queues", ("support_core.first=oldest",)),
}


def _runs(choice: Choice) -> list[Spec]:
    return [spec for name in choice.allocators for spec in runs_of_variants(choice, name, STEPS.values())]


def _cells(choice: Choice, results: Results) -> list[Cell]:
    found = []
    for name in choice.allocators:
        found += cells_of_variants(choice, results, name, STEPS, f"{name}, over itself in software")
    return found


QUEUE_ORDER = Figure(
    "order",
    "Queues with mallocs first, and with the oldest first",
    "Figure 17's steps on the idle main core: signals, and signals with queues in hardware, which serve mallocs first, "
    "as the paper's do, or what came first. Queues that are slower than signals alone because mallocs starve frees are "
    "so in the former column and not in the latter.",
    _runs,
    _cells,
    unit="speedup over software",
    kind="",
)
