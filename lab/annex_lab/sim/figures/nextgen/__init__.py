"""The tables of NextGen-Malloc, and its model of what a hand-over may cost."""

from annex_lab.sim.figures.figure import Paper
from annex_lab.sim.figures.nextgen.model import MODEL
from annex_lab.sim.figures.nextgen.tables import ALLOCATORS, SCALES, TABLE_1, TABLE_2, TABLE_3

PAPER = Paper("nextgen", "NextGen-Malloc", [TABLE_1, TABLE_2, TABLE_3, MODEL], SCALES, ALLOCATORS)
