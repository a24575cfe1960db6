"""The figures of SpeedMalloc's evaluation, by their numbers."""

from annex_lab.sim.figures.figure import Paper
from annex_lab.sim.figures.speedmalloc import common
from annex_lab.sim.figures.speedmalloc.costs import FIGURE_10, FIGURE_11, FIGURE_12
from annex_lab.sim.figures.speedmalloc.density import DENSITY
from annex_lab.sim.figures.speedmalloc.energy import FIGURE_13
from annex_lab.sim.figures.speedmalloc.everything import EVERY_ALLOCATOR
from annex_lab.sim.figures.speedmalloc.existing import EXISTING
from annex_lab.sim.figures.speedmalloc.kernel import SECTION_2_1
from annex_lab.sim.figures.speedmalloc.ladder import FIGURE_17
from annex_lab.sim.figures.speedmalloc.left import LEFT
from annex_lab.sim.figures.speedmalloc.memento import MEMENTO_PLUS
from annex_lab.sim.figures.speedmalloc.one_change import ONE_CHANGE
from annex_lab.sim.figures.speedmalloc.queue_order import QUEUE_ORDER
from annex_lab.sim.figures.speedmalloc.saved import SECTION_6_2_1, SECTION_6_2_2
from annex_lab.sim.figures.speedmalloc.scaling import SCALING
from annex_lab.sim.figures.speedmalloc.share import SHARE_OF_ALLOCATION
from annex_lab.sim.figures.speedmalloc.sizes import FIGURE_14, FIGURE_15, FIGURE_16
from annex_lab.sim.figures.speedmalloc.speedups import FIGURE_8, FIGURE_9
from annex_lab.sim.figures.speedmalloc.stacked import STACKED
from annex_lab.sim.figures.speedmalloc.table3 import TABLE_3
from annex_lab.sim.figures.speedmalloc.variation import FIGURE_1
from annex_lab.sim.figures.speedmalloc.working_sets import WORKING_SETS

FIGURES = [
    FIGURE_1,
    FIGURE_8,
    FIGURE_9,
    FIGURE_10,
    FIGURE_11,
    FIGURE_12,
    FIGURE_13,
    FIGURE_14,
    FIGURE_15,
    FIGURE_16,
    FIGURE_17,
    TABLE_3,
    SECTION_2_1,
    SECTION_6_2_1,
    SECTION_6_2_2,
    ONE_CHANGE,
    EXISTING,
    DENSITY,
    QUEUE_ORDER,
    SHARE_OF_ALLOCATION,
    SCALING,
    EVERY_ALLOCATOR,
    MEMENTO_PLUS,
    STACKED,
    WORKING_SETS,
    LEFT,
]

PAPER = Paper(
    "speedmalloc",
    "SpeedMalloc",
    FIGURES,
    common.SCALES,
    common.ALLOCATORS,
    common.SIZES,
    common.IN_SOFTWARE,
    common.ONE_SEED,
)
