"""3.2: the allocator on a small core near memory, beside one among the main cores. The paper has no numbers."""

from dataclasses import replace

from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.figure import Choice, Figure
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.speedmalloc import common
from annex_lab.sim.figures.values import Results

HARDWARE = "near-memory"
VARIANTS = {
    "among the main cores": (common.SUPPORT, ()),
    "near memory": (HARDWARE, ()),
    "near memory, calls cost nothing beside the signals": (HARDWARE, common.SIGNALS),
}


def _as_elsewhere(choice: Choice) -> Choice:
    """As much work as in SpeedMalloc's figures, whose runs these are."""
    return replace(choice, scales=choice.scales | common.MULTI)


def _runs(choice: Choice) -> list[Spec]:
    asked = _as_elsewhere(choice)
    return [spec for name in asked.allocators for spec in common.runs_of_variants(asked, name, VARIANTS.values())]


def _cells(choice: Choice, results: Results) -> list[Cell]:
    asked = _as_elsewhere(choice)
    return [
        cell
        for name in asked.allocators
        for cell in common.cells_of_variants(asked, results, name, VARIANTS, f"{name}: speedup over itself in software")
    ]


NEAR_MEMORY = Figure(
    "3.2",
    "A small core near memory",
    f"{common.MANY} threads. SpeedMalloc's support core, with its queues, as it is and as far from the main cores and "
    "their caches as memory is, and so much nearer to memory; the distances are those of the simulated machine, as the "
    "paper gives none.",
    _runs,
    _cells,
    unit="speedup over software",
    kind="Section",
    allocators=common.ALLOCATORS,
)
