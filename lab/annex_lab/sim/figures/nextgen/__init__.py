"""NextGen-Malloc: its figure and tables, its model of a hand-over, two layouts of metadata, a core near memory."""

from annex_lab.sim.figures.figure import Paper
from annex_lab.sim.figures.nextgen.layouts import LAYOUTS
from annex_lab.sim.figures.nextgen.layouts import SCALES as LAYOUT_SCALES
from annex_lab.sim.figures.nextgen.model import MODEL
from annex_lab.sim.figures.nextgen.near_memory import NEAR_MEMORY, TWO_FLAGS
from annex_lab.sim.figures.nextgen.sensitivity import FIGURE_1
from annex_lab.sim.figures.nextgen.sensitivity import SCALES as SENSITIVITY_SCALES
from annex_lab.sim.figures.nextgen.tables import ALLOCATORS, SCALES, TABLE_1, TABLE_2, TABLE_3
from annex_lab.sim.figures.speedmalloc import common

FIGURES = [FIGURE_1, TABLE_1, TABLE_2, TABLE_3, MODEL, LAYOUTS, NEAR_MEMORY, TWO_FLAGS]
PAPER = Paper(
    "nextgen",
    "NextGen-Malloc",
    FIGURES,
    common.MULTI | SCALES | LAYOUT_SCALES | SENSITIVITY_SCALES,
    ALLOCATORS,
    common.SIZES,
    one_seed=common.ONE_SEED,
)
