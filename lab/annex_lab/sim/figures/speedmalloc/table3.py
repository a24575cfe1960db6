"""Table 3: the allocator's share of instructions, and each allocator's speed over jemalloc's."""

from annex_lab.sim.figures.cells import SHARE, Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.speedmalloc import paper
from annex_lab.sim.figures.speedmalloc.common import (
    ANNEX,
    MANY,
    MULTI,
    OURS,
    PEERS,
    SUPPORT,
    in_software,
    offloaded,
    share_of_instructions,
    speedup,
    table,
)
from annex_lab.sim.figures.values import AVERAGE, MEAN, Column, Results, in_panel

BASE = PEERS[0]
SHARES = f"allocator's share of instructions under {BASE}, per cent"
SPEEDUPS = f"speedup over {BASE}"


def _runs(choice: Choice) -> list[Spec]:
    made = []
    for name in dict.fromkeys([BASE, *choice.allocators]):
        made += each(choice.maker(name, MANY), choice.of(MULTI), choice.seeds)
    for name in choice.among((ANNEX, OURS)):
        made += each(choice.maker(name, MANY, SUPPORT), choice.of(MULTI), choice.seeds)
    return made


def _known(name: str) -> dict[str, float]:
    if name not in paper.OVER_JEMALLOC:
        return {}
    return paper.OVER_JEMALLOC[name] | {MEAN: paper.OVER_JEMALLOC_MEAN[name]}


def _cells(choice: Choice, results: Results) -> list[Cell]:
    workloads = choice.of(MULTI)
    shares = Column(BASE, share_of_instructions(choice, BASE), paper.SHARES, paper.TABLE, mean=AVERAGE, unit=SHARE)
    speedups = [
        Column(name, speedup(choice, name, BASE, MANY), _known(name), paper.TABLE)
        for name in in_software(choice)
        if name != BASE
    ]
    for name in choice.among((ANNEX, OURS)):
        known = paper.SPEEDMALLOC | {MEAN: paper.SPEEDUP[BASE][MANY]} if name == OURS else {}
        speedups.append(Column(offloaded(name), speedup(choice, name, BASE, MANY, SUPPORT), known, paper.TABLE))
    return [
        *table(choice, results, [shares], workloads, in_panel(SHARES)),
        *table(choice, results, speedups, workloads, in_panel(SPEEDUPS)),
    ]


TABLE_3 = Figure(
    "table3",
    "Programs of several threads",
    "16 threads. The paper's programs are of its own inputs, on AArch64, under allocators of 2023 or 2024; its "
    "SpeedMalloc is an allocator of its own; beside it stands Annex on the support core with its metadata apart from "
    "the blocks. What was tried to find why the orders differ is in docs/simulator-table3.md.",
    _runs,
    _cells,
    unit="speedup over jemalloc, or share",
    kind="Table",
)
