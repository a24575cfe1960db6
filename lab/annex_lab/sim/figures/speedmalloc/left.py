"""In no paper: what is left for hardware to gain, with structures as large as the papers' and little else simulated.

Figure 17 has the steps in between, too: three runs more of each program under each allocator.
"""

from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.figure import Choice, Figure
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.speedmalloc import ladder
from annex_lab.sim.figures.speedmalloc.common import MANY, MULTI, SUPPORT, both, bound_runs
from annex_lab.sim.figures.values import Results


def _runs(choice: Choice) -> list[Spec]:
    workloads = choice.of(MULTI)
    made = both(choice, workloads, MANY)
    return made + [spec for name in choice.allocators for spec in bound_runs(choice, name, workloads, MANY)]


def _cells(choice: Choice, results: Results) -> list[Cell]:
    return ladder.shares_of(choice, results) + ladder.speedups(choice, results, (SUPPORT,))


LEFT = Figure(
    "left",
    "What is left for hardware",
    "16 threads, and structures as large as the papers'. Each allocator on the support core over itself in software, "
    "and ours there over each; beside each number what it would be if calls cost nothing beside the signals.",
    _runs,
    _cells,
    unit="speedup over software, or share",
    pictured=lambda panel: panel != ladder.SHARES,
    kind="",
)
