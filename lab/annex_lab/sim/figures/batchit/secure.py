"""Figures 2 and 3 once more with secure builds, which the paper has beside the default ones."""

from dataclasses import replace

from annex_lab.sim.figures.batchit import paper
from annex_lab.sim.figures.batchit.benchmarks import SUITE
from annex_lab.sim.figures.batchit.effect import FIGURE_2, FIGURE_3, TIME, Effect
from annex_lab.sim.figures.figure import Figure

BY_HEAP, BY_SLAB = ("snmalloc-checks", "annex-hardened-near"), ("annex-hardened-near-by-slab",)
_ANNEX = (
    "Hardened Annex encodes its links, and holds freed blocks back for a while before it gives them to their owners; "
    "near is for the simulator, which has fewer addresses. "
)


def _figure(of: Figure, title: str, reads: str, effect: Effect) -> Figure:
    return replace(
        of,
        name=f"{of.name}-secure",
        title=title,
        reads=reads + _ANNEX + "All else as in the figure of the default builds.",
        runs=effect.runs,
        cells=effect.cells,
        allocators=effect.allocators,
    )


FIGURE_2_SECURE = _figure(
    FIGURE_2,
    "What batches do to queues for each heap, secure builds",
    "snmalloc 0.7.6 with every check, and the same without batches; and hardened Annex. The paper's numbers are secure "
    "snmalloc's, of which it says besides that no benchmark takes more than 2.1 % longer. ",
    Effect(BY_HEAP, SUITE, {TIME: paper.SNMALLOC_SECURE}, "4.1, secure", mean=True),
)
FIGURE_3_SECURE = _figure(
    FIGURE_3,
    "What batches do to queues for each slab, secure builds",
    "The paper's variant of mimalloc was never published, and mimalloc itself has no batches; in its place stands "
    "hardened Annex built with a queue for each slab. The paper's numbers are secure mimalloc's. ",
    Effect(BY_SLAB, SUITE, {TIME: paper.MIMALLOC_SECURE}, "4.2, mimalloc, secure", mean=True),
)
