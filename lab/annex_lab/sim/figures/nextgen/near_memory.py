"""Where the allocator's core is and how it is asked, simulated: 3.2's core near memory, Pseudo Code 1's flags.

The paper has no numbers of either.
"""

from collections.abc import Callable, Mapping
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


FLAGS = {
    "a number each way": ("ic-malloc", ()),
    "two flags": ("ic-malloc", ("support_core.flags=two",)),
    "two flags, set by plain stores": ("ic-malloc", ("support_core.flags=two", "support_core.publish=store")),
}


def _as_elsewhere(choice: Choice) -> Choice:
    """As much work as in SpeedMalloc's figures, whose runs these are."""
    return replace(choice, scales=choice.scales | common.MULTI)


def _runs(variants: Mapping[str, common.Variant]) -> Callable[[Choice], list[Spec]]:
    def runs(choice: Choice) -> list[Spec]:
        asked = _as_elsewhere(choice)
        return [spec for name in asked.allocators for spec in common.runs_of_variants(asked, name, variants.values())]

    return runs


def _cells(variants: Mapping[str, common.Variant]) -> Callable[[Choice, Results], list[Cell]]:
    def cells(choice: Choice, results: Results) -> list[Cell]:
        asked = _as_elsewhere(choice)
        return [
            cell
            for name in asked.allocators
            for cell in common.cells_of_variants(
                asked, results, name, variants, f"{name}: speedup over itself in software"
            )
        ]

    return cells


NEAR_MEMORY = Figure(
    "3.2",
    "A small core near memory",
    f"{common.MANY} threads. SpeedMalloc's support core, with its queues, as it is and as far from the main cores and "
    "their caches as memory is, and so much nearer to memory; the distances are those of the simulated machine, as the "
    "paper gives none.",
    _runs(VARIANTS),
    _cells(VARIANTS),
    unit="speedup over software",
    kind="Section",
    allocators=common.ALLOCATORS,
)
TWO_FLAGS = Figure(
    "code1",
    "Pseudo Code 1's flags, on an idle core",
    f"{common.MANY} threads. Calls of malloc through shared memory: a number beside the argument and one beside the "
    "result, a line each way; and two flags as in the paper, which are cleared again, so that the argument's line goes "
    "back, too. The paper doesn't say who clears the second: here who has read it. Frees are as in ic-malloc.",
    _runs(FLAGS),
    _cells(FLAGS),
    unit="speedup over software",
    kind="",
    allocators=common.ALLOCATORS,
)
