"""The figures of Mallacc's evaluation, by their numbers."""

from annex_lab.sim.figures.figure import Figure, Paper
from annex_lab.sim.figures.mallacc import common
from annex_lab.sim.figures.mallacc.area import AREA_FIGURE
from annex_lab.sim.figures.mallacc.classes import FIGURE_6
from annex_lab.sim.figures.mallacc.distance import DISTANCE
from annex_lab.sim.figures.mallacc.lengths import FIGURE_1, FIGURE_2, FIGURE_15, FIGURE_16
from annex_lab.sim.figures.mallacc.sizes import FIGURE_17
from annex_lab.sim.figures.mallacc.steps import FIGURE_4
from annex_lab.sim.figures.mallacc.times import FIGURE_13, FIGURE_14, TABLE_2
from annex_lab.sim.figures.mallacc.validation import TABLE_1

FIGURE_18 = Figure(
    "18",
    "Time in the allocator, in data centers",
    "",
    missing=lambda: "it needs profiles of Google's data centers",
)

FIGURES = [
    *(FIGURE_1, FIGURE_2, FIGURE_4, FIGURE_6, TABLE_1),
    *(FIGURE_13, FIGURE_14, FIGURE_15, FIGURE_16, FIGURE_17, FIGURE_18, TABLE_2),
    *(AREA_FIGURE, DISTANCE),
]
PAPER = Paper("mallacc", "Mallacc", FIGURES, common.SCALES, common.ALLOCATORS)
