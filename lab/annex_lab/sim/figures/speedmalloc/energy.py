"""Figure 13: energy, a sensitivity: its error bar is what the estimate's parameters leave open."""

from dataclasses import dataclass

import numpy as np

from annex_lab import intervals
from annex_lab.sim.figures import metrics
from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.figure import Choice, Figure
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.speedmalloc import paper
from annex_lab.sim.figures.speedmalloc.common import (
    ATOP,
    MANY,
    MULTI,
    OURS,
    OVER_EACH,
    OVER_HARDWARE,
    OVER_ITSELF,
    PEERS,
    SUPPORT,
    accelerators,
    both,
    called,
    of_accelerators,
    seeds_of,
)
from annex_lab.sim.figures.values import MEAN, Missing, Results

THREADS = (2, 4, 8, 16)
BY_WORKLOAD = f"{OVER_ITSELF}, {MANY} threads"


@dataclass(frozen=True)
class Base:
    """What is set against an allocator on the support core."""

    allocator: str
    hardware: str = ""  # an accelerator; none: software

    @property
    def called(self) -> str:
        return called(self.allocator, self.hardware)

    def known(self, threads: int) -> float | None:
        if self.hardware:
            return paper.ENERGY_OVER_HARDWARE[self.hardware] if threads == MANY else None
        return paper.ENERGY.get(self.allocator, {}).get(threads)


def _runs(choice: Choice) -> list[Spec]:
    made = [spec for threads in THREADS for spec in both(choice, choice.of(MULTI), threads)]
    return made + of_accelerators(choice, choice.of(MULTI), MANY)


def _saved(choice: Choice, results: Results, mine: str, base: Base, threads: int, workload: str) -> list[np.ndarray]:
    """By seed, the logarithms of what is saved with each draw of the parameters, the same ones for both runs."""
    found = []
    for seed in seeds_of(choice, threads):
        of_base = results.get(choice.run(workload, base.allocator, threads, seed, base.hardware), metrics.ENERGY_DRAWN)
        found.append(
            np.log(of_base / results.get(choice.run(workload, mine, threads, seed, SUPPORT), metrics.ENERGY_DRAWN))
        )
    return found


def _cell(
    choice: Choice, results: Results, mine: str, base: Base, threads: int, workloads: list[str], place: tuple[str, str]
) -> Cell:
    """The geometric mean over workloads: the seeds' range is of nominal parameters, the interval of the drawn ones."""
    by_workload, why = [], ""
    for workload in workloads:
        try:
            by_workload.append(_saved(choice, results, mine, base, threads, workload))
        except Missing as missing:
            why = str(missing)
    if not by_workload:
        return Cell(*place, base.called, None, note=why)
    by_seed = np.exp(np.mean(by_workload, axis=0))
    drawn = np.exp(np.mean(by_workload, axis=(0, 1)))
    low, high = intervals.of_draws(drawn)
    known = base.known(threads) if len(workloads) > 1 else None
    note = f"of {len(by_workload)} of {len(workloads)}" if len(by_workload) < len(workloads) else ""
    return Cell(
        *place,
        base.called,
        float(drawn[0]),
        float(by_seed[:, 0].min()),
        float(by_seed[:, 0].max()),
        low,
        high,
        known,
        "6.3" if known else "",
        note=note,
    )


def _cells(choice: Choice, results: Results) -> list[Cell]:
    workloads, found = choice.of(MULTI), []
    each_over_each = [(OURS, Base(name)) for name in choice.among(PEERS)] if OURS in choice.allocators else []
    for panel, pairs in (
        (OVER_EACH, each_over_each),
        (OVER_ITSELF, [(name, Base(name)) for name in choice.allocators]),
    ):
        for threads in THREADS:
            for mine, base in pairs:
                found.append(_cell(choice, results, mine, base, threads, workloads, (panel, str(threads))))
    for hardware in accelerators(choice) if OURS in choice.allocators else []:
        base = Base(ATOP[hardware], hardware)
        found.append(_cell(choice, results, OURS, base, MANY, workloads, (OVER_HARDWARE, str(MANY))))
    for row in (*workloads, MEAN):
        for name in choice.allocators:
            of = workloads if row == MEAN else [row]
            found.append(_cell(choice, results, name, Base(name), MANY, of, (BY_WORKLOAD, row)))
    return found


FIGURE_13 = Figure(
    "13",
    "Energy saved, by threads",
    "Energy of the chip in software / with the support core; means are geometric, over workloads. The interval in "
    "brackets, the error bar, is not over workloads here, but what the energy model's parameters leave open, drawn "
    "many times from their ranges, the same draws for both runs. The accelerators are at each main core: Memento+ atop "
    "TCMalloc, and Mallacc, with a malloc cache of 16 KiB, atop gperftools' TCMalloc with markers.",
    _runs,
    _cells,
    drawn="lines",
    unit="energy saved",
    pictured=lambda panel: panel not in (BY_WORKLOAD, OVER_HARDWARE),
)
