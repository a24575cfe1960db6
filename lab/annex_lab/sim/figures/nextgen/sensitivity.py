"""Figure 1: how much of a program's time hangs on the allocator, beside the time that is spent in it."""

from annex_lab.sim.figures import metrics
from annex_lab.sim.figures.cells import SHARE, Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.nextgen import paper
from annex_lab.sim.figures.nextgen.tables import BASE, XALAN, XMALLOC, one
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.speedmalloc import common
from annex_lab.sim.figures.values import Column, Results, Value, of, over

SCRATCH = "cache-scratch"
THREADS = 8  # of the two below; the paper doesn't say
SCALES = {SCRATCH: common.SCALES[SCRATCH]}
SPEEDUP, IN_IT, SPREAD = "speedup over glibc's", "share of cycles in malloc and free", "longest time over shortest"
SPREAD_OF = (XMALLOC, SCRATCH)


def _runs(choice: Choice) -> list[Spec]:
    return [
        spec
        for name in choice.allocators
        for workload, threads in ((XALAN, 1), *((workload, THREADS) for workload in SPREAD_OF))
        for spec in each(choice.maker(name, threads), choice.of([workload]), choice.seeds)
    ]


def _spread(choice: Choice) -> Value:
    """Of the allocators' times."""
    times = [of(choice.maker(name, THREADS), "cycles") for name in choice.allocators]

    def value(results: Results, workload: str, seed: int) -> float:
        taken = [time(results, workload, seed) for time in times]
        return max(taken) / min(taken)

    return value


def _cells(choice: Choice, results: Results) -> list[Cell]:
    found = []
    for name in choice.allocators:
        known = {XALAN: paper.SPEEDUP[name]} if name in paper.SPEEDUP else {}
        if name != BASE and BASE in choice.allocators:
            times = (of(choice.maker(one_of, 1), "cycles") for one_of in (BASE, name))
            found += one(choice, results, Column(name, over(*times), known, "Figure 1"), XALAN, XALAN, SPEEDUP)
    for name in choice.allocators:
        run = choice.maker(name, 1)
        share = over(of(run, metrics.ALLOCATOR_CYCLES), of(run, "busy_all"))
        column = Column(name, share, {XALAN: paper.IN_ALLOCATOR}, "Figure 1's caption", unit=SHARE)
        found += one(choice, results, column, XALAN, XALAN, IN_IT)
    for workload in SPREAD_OF:
        column = Column("time", _spread(choice), {workload: paper.SPREAD}, "1, more than")
        found += one(choice, results, column, workload, workload, SPREAD)
    return found


FIGURE_1 = Figure(
    "1",
    "How much hangs on the allocator",
    "xalan with one thread. The paper's 2 % are of xalancbmk, under which allocator it doesn't say. Below it, of how "
    f"many times the shortest the longest time is under these allocators, for two programs with {THREADS} threads.",
    _runs,
    _cells,
    unit="see the panel",
)
