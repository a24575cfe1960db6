"""In no paper: what is left for hardware to gain, with structures as large as the papers', in the fewest runs.

Each allocator in software; Annex on the support core, with its metadata in the blocks and apart, and where its calls
cost nothing. Figure 17 has each allocator there, and the steps in between.
"""

from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.speedmalloc import ladder, paper
from annex_lab.sim.figures.speedmalloc.common import (
    ANNEX,
    MANY,
    MULTI,
    OURS,
    SUPPORT,
    bound_runs,
    bounds,
    in_software,
    offloaded,
    speedup,
    table,
)
from annex_lab.sim.figures.values import Column, Results, in_panel, of, over

APART = f"on the support core, over {ANNEX} there"


def _runs(choice: Choice) -> list[Spec]:
    workloads, made = choice.of(MULTI), []
    for name in in_software(choice):
        made += each(choice.maker(name, MANY), workloads, choice.seeds)
    for name in choice.among((ANNEX, OURS)):
        made += each(choice.maker(name, MANY, SUPPORT), workloads, choice.seeds)
        made += bound_runs(choice, name, workloads, MANY)
    return made


def _over(choice: Choice, mine: str, name: str) -> Column:
    known = paper.over(name) if mine == OURS else {}
    value = speedup(choice, mine, name, MANY, SUPPORT)
    return Column(name, value, known, f"{paper.TABLE}, 6.2.1", bounds=bounds(choice, mine, name, MANY))


def _layouts(choice: Choice, results: Results) -> list[Cell]:
    """What it gains to have the metadata apart, on the support core."""
    together, apart = (of(choice.maker(name, MANY, SUPPORT), "cycles") for name in (ANNEX, OURS))
    return table(choice, results, [Column(OURS, over(together, apart))], choice.of(MULTI), in_panel(APART))


def _cells(choice: Choice, results: Results) -> list[Cell]:
    found = ladder.shares_of(choice, results)
    for mine in choice.among((ANNEX, OURS)):
        columns = [_over(choice, mine, name) for name in in_software(choice)]
        place = in_panel(f"{offloaded(mine)}, over each in software")
        found += table(choice, results, columns, choice.of(MULTI), place)
    return found + (_layouts(choice, results) if {ANNEX, OURS} <= set(choice.allocators) else [])


LEFT = Figure(
    "left",
    "What is left for hardware",
    "16 threads, and structures as large as the papers'. Annex on the support core over each allocator in software: as "
    "it is, and with its metadata apart from the blocks, as the paper has it. Beside each number stands what it would "
    "be if Annex's calls cost nothing beside the signals.",
    _runs,
    _cells,
    unit="speedup over software, or share",
    pictured=lambda panel: panel != ladder.SHARES,
    kind="",
)
