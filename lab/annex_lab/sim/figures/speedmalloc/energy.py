"""Figure 13: energy, a sensitivity: what the estimate's lowest and highest make of it is its error bar."""

import importlib.util
from dataclasses import replace

from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.figure import Choice, Figure
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.speedmalloc import paper
from annex_lab.sim.figures.speedmalloc.common import MULTI, OURS, PEERS, SUPPORT, both, offloaded, table
from annex_lab.sim.figures.values import MEAN, Column, Results, in_panel, of, over

THREADS = (2, 4, 8, 16)
OVER_EACH = f"{offloaded(OURS)}, over each in software"
OVER_ITSELF = "each on the support core, over itself in software"


def _missing() -> str:
    return "" if importlib.util.find_spec("annex_lab.sim.energy") else "needs energy: annex_lab.sim.energy is not there"


def _runs(choice: Choice) -> list[Spec]:
    return [spec for threads in THREADS for spec in both(choice, choice.of(MULTI), threads)]


def _mean(choice: Choice, results: Results, mine: str, base: str, threads: int, metric: str) -> Cell:
    value = over(of(choice.maker(base, threads), metric), of(choice.maker(mine, threads, SUPPORT), metric))
    known = {MEAN: paper.ENERGY[base][threads]} if base in paper.ENERGY else {}
    column = Column(base, value, known, "6.3")
    return table(choice, results, [column], choice.of(MULTI), in_panel(""), threads)[-1]


def _cells(choice: Choice, results: Results) -> list[Cell]:
    found = []
    for panel, names in ((OVER_EACH, choice.among(PEERS)), (OVER_ITSELF, choice.allocators)):
        for threads in THREADS:
            for name in names:
                mine = OURS if panel == OVER_EACH else name
                cell = _mean(choice, results, mine, name, threads, "energy")
                ends = [_mean(choice, results, mine, name, threads, f"energy_{end}").ours for end in ("low", "high")]
                if None not in ends:  # the bar is of the estimate, which is the larger uncertainty
                    cell = replace(cell, low_95=None, high_95=None, seeds_low=min(ends), seeds_high=max(ends))
                found.append(replace(cell, panel=panel, row=str(threads)))
    return found


FIGURE_13 = Figure(
    "13",
    "Energy saved, by threads",
    "Energy in software / with the support core, geometric mean of the workloads. The range is not the seeds' here, "
    "but what the estimate's lowest and highest energies make of it.",
    _runs,
    _cells,
    drawn="lines",
    unit="energy saved",
    missing=_missing,
)
