"""The figures of BatchIt: batches of what a thread has freed of others' slabs, over the same allocator without them."""

from annex_lab.sim.figures.batchit.benchmarks import SCALES, SIZES
from annex_lab.sim.figures.batchit.beside import AMONG_PEERS, COST, OVER_THE_BETTER, SHAPES
from annex_lab.sim.figures.batchit.effect import ALLOCATORS, FIGURE_2, FIGURE_3, FIGURE_4, FIGURE_5
from annex_lab.sim.figures.batchit.many_pairs import MANY_PAIRS
from annex_lab.sim.figures.batchit.secure import FIGURE_2_SECURE, FIGURE_3_SECURE
from annex_lab.sim.figures.figure import Paper

PAPER = Paper(
    "batchit",
    "BatchIt",
    [
        *(FIGURE_2, FIGURE_3, FIGURE_2_SECURE, FIGURE_3_SECURE, FIGURE_4, FIGURE_5, MANY_PAIRS),
        *(OVER_THE_BETTER, COST, SHAPES, AMONG_PEERS),
    ],
    SCALES,
    ALLOCATORS,
    SIZES,
)
