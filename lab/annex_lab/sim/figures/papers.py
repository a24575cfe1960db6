"""The papers whose figures are made again, in the order in which they are shown."""

from annex_lab.sim.figures import batchit, exgen, mallacc, nextgen, speedmalloc

PAPERS = [nextgen.PAPER, speedmalloc.PAPER, mallacc.PAPER, batchit.PAPER, exgen.PAPER]
