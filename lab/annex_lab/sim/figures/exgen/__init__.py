"""What Exgen-Malloc's abstract claims, measured here with Annex's flavour for one thread; and its reason, simulated."""

from annex_lab.sim.figures.exgen.claims import ALLOCATORS, CLAIMS, SCALES
from annex_lab.sim.figures.exgen.misses import MISSES
from annex_lab.sim.figures.figure import Paper

PAPER = Paper("exgen", "Exgen-Malloc", [*CLAIMS, MISSES], SCALES, ALLOCATORS)
