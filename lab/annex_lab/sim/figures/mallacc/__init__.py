"""The figures of Mallacc's evaluation, by their numbers."""

from annex_lab.sim.figures.figure import Paper
from annex_lab.sim.figures.mallacc import common
from annex_lab.sim.figures.mallacc.sizes import FIGURE_17
from annex_lab.sim.figures.mallacc.times import FIGURE_13, FIGURE_14

FIGURES = [FIGURE_13, FIGURE_14, FIGURE_17]
PAPER = Paper("mallacc", "Mallacc", FIGURES, common.SCALES, common.ALLOCATORS)
