"""Figures 4 and 5 with more pairs, as far as there is a machine for them."""

from annex_lab.sim.figures.batchit import paper
from annex_lab.sim.figures.batchit.benchmarks import MANY_MESSAGES
from annex_lab.sim.figures.batchit.effect import BY_HEAP, BY_SLAB, TIME, Effect
from annex_lab.sim.figures.figure import Figure

_EFFECT = Effect(
    (*BY_HEAP, *BY_SLAB),
    MANY_MESSAGES,
    {TIME: paper.MANY_MESSAGES},
    "the results that go with Figure 4",
    mean=False,
)
MANY_PAIRS = Figure(
    "pairs",
    "What batches do to message passing, 20 to 32 pairs",
    "As Figures 4 and 5, simulated alone. A core each on a machine with 64; the paper has 40 pairs, too, on 72 cores. "
    "The paper's numbers are snmalloc's.",
    _EFFECT.runs,
    _EFFECT.cells,
    unit="with batches / without",
    kind="",
)
