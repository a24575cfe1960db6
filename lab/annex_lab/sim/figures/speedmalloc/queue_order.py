"""Not in the paper: what its queues' order, mallocs before frees, does to Figure 17's ladder."""

from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.speedmalloc.common import MANY, MULTI, speedup, table
from annex_lab.sim.figures.values import Column, Results, in_panel

OLDEST = ("support_core.first=oldest",)
STEPS = {
    "signals": ("ic-malloc-signals", ()),
    "queues, mallocs first": ("ic-malloc-queues", ()),
    "queues, the oldest first": ("ic-malloc-queues", OLDEST),
}


def _runs(choice: Choice) -> list[Spec]:
    made = []
    for name in choice.allocators:
        for hardware, settings in (("", ()), *STEPS.values()):
            made += each(choice.maker(name, MANY, hardware, settings), choice.of(MULTI), choice.seeds)
    return made


def _cells(choice: Choice, results: Results) -> list[Cell]:
    found = []
    for name in choice.allocators:
        columns = [
            Column(what, speedup(choice, name, name, MANY, hardware, settings))
            for what, (hardware, settings) in STEPS.items()
        ]
        found += table(choice, results, columns, choice.of(MULTI), in_panel(f"{name}, over itself in software"))
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
