"""Figure 17 once more where calls are as dense as in the paper's Table 3: other work is added after each of them."""

from dataclasses import replace

from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.figure import Choice, Figure
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.speedmalloc import ladder
from annex_lab.sim.figures.speedmalloc.common import OURS, TODAY
from annex_lab.sim.figures.values import Results

# Instructions after each call: those with which jemalloc's share in software is the table's, (A / share - T) / calls of
# a run without them that has T instructions, A of them the allocator's. cache-scratch has that share without any;
# gap-bc would need 31,110, with which a run is 46 billion.
OTHER_WORK = {
    "larson": 1000,
    "xmalloc": 3963,
    "sh6bench": 863,
    "sh8bench": 655,
    "mstress": 2032,
    "alloc-test": 1524,
    "gap-bfs": 3174,
    "gap-bc": 6000,
    "nas-dc": 1205,
}


def thinned(choice: Choice) -> Choice:
    return replace(choice, other_work=OTHER_WORK)


def _runs(choice: Choice) -> list[Spec]:
    return ladder.runs_of(thinned(choice))


def _cells(choice: Choice, results: Results) -> list[Cell]:
    there = thinned(choice)
    return ladder.shares_of(there, results) + ladder.cells_of(there, results)


DENSITY = Figure(
    "density",
    "Figure 17 where calls are as dense as in Table 3",
    "As Figure 17, with other work after each call of the allocator: so many instructions, the same under all "
    "allocators, that the allocator's share of instructions is the one in the paper's Table 3 under jemalloc. They "
    "touch the program's own lines, as often and as far back as it does itself. What differs from Figure 17 is of the "
    "density of calls alone. gap-bc has less such work: making its graph calls so often that the table's share would "
    "be of 46 billion instructions.",
    _runs,
    _cells,
    unit="speedup over software, or share",
    pictured=ladder.is_pictured,
    kind="",
    allocators=(*TODAY, OURS),
)
