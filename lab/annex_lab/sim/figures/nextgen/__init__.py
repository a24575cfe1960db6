"""The tables of NextGen-Malloc, its model of what a hand-over may cost, and its two layouts of metadata."""

from annex_lab.sim.figures.figure import Paper
from annex_lab.sim.figures.nextgen.layouts import LAYOUTS
from annex_lab.sim.figures.nextgen.layouts import SCALES as LAYOUT_SCALES
from annex_lab.sim.figures.nextgen.model import MODEL
from annex_lab.sim.figures.nextgen.tables import ALLOCATORS, SCALES, TABLE_1, TABLE_2, TABLE_3
from annex_lab.sim.figures.speedmalloc.common import SIZES

PAPER = Paper(
    "nextgen",
    "NextGen-Malloc",
    [TABLE_1, TABLE_2, TABLE_3, MODEL, LAYOUTS],
    SCALES | LAYOUT_SCALES,
    ALLOCATORS,
    SIZES,
)
