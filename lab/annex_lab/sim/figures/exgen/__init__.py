"""What Exgen-Malloc's abstract claims, measured on this machine with Annex's flavour for one thread."""

from annex_lab.sim.figures.exgen.claims import ALLOCATORS, CLAIMS, SCALES
from annex_lab.sim.figures.figure import Paper

PAPER = Paper("exgen", "Exgen-Malloc", CLAIMS, SCALES, ALLOCATORS)
