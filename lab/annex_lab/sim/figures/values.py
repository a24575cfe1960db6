"""Numbers by workload and seed, and cells of them.

Ratios are taken seed by seed. A workload's number is their geometric mean, with the lowest and the highest seed beside
it; a mean over workloads is taken for each seed, and then over seeds. Its 95 % interval is Student's t over workloads,
of logarithms where the mean is geometric: it says how much hangs on the choice of them, the seeds how much is luck, of
addresses too where each seed has its own.
"""

import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from annex_lab import intervals, stats
from annex_lab.sim.figures.cells import ABOVE, BEHIND, RATIO, Cell
from annex_lab.sim.figures.host import Measurement
from annex_lab.sim.figures.metrics import LAYOUT
from annex_lab.sim.figures.runs import Spec

MEAN = "geometric mean"
AVERAGE = "mean"
LEVEL = 0.01  # beyond its bound by no more than this is at its bound


class Missing(Exception):
    """There is no number; the message says why."""


class Results:
    """What came of runs, and of measurements on this machine: their metrics, or why there are none."""

    def __init__(self, measured: Mapping[Spec | Measurement, Mapping], why: Mapping[Spec | Measurement, str]):
        self._measured = measured
        self._why = why

    def get(self, spec: Spec | Measurement, metric: str):
        """A number; of drawn energies an array; of a measurement its samples."""
        if spec not in self._measured:
            raise Missing(self._why.get(spec, "not asked for"))
        return self._measured[spec][metric]

    def over_layouts(self, specs: Iterable[Spec]) -> bool:
        """Whether each seed has addresses of its own, in all of these runs that there are."""
        there = [(spec.seed, self._measured[spec][LAYOUT]) for spec in specs if spec in self._measured]
        return bool(there) and all(seed == layout != 0 for seed, layout in there)


Value = Callable[[Results, str, int], float]  # of a workload and a seed; raises Missing


def of(make: Callable[[str, int], Spec], metric: str) -> Value:
    return lambda results, workload, seed: results.get(make(workload, seed), metric)


def over(top: Value, bottom: Value) -> Value:
    def value(results: Results, workload: str, seed: int) -> float:
        above, below = top(results, workload, seed), bottom(results, workload, seed)
        if below == 0:
            raise Missing("divided by zero")
        return above / below

    return value


def least(*values: Value) -> Value:
    return lambda results, workload, seed: min(value(results, workload, seed) for value in values)


def less(top: Value, bottom: Value) -> Value:
    return lambda results, workload, seed: top(results, workload, seed) - bottom(results, workload, seed)


@dataclass(frozen=True)
class Bounds:
    """The same number where calls cost nothing beside the signals, with the first seed; and as much as in software."""

    signals: Value
    software: Value


@dataclass(frozen=True)
class Column:
    """One series of a figure: a value for each workload, and their mean."""

    series: str
    value: Value
    paper: Mapping[str, float] = field(default_factory=dict)  # by workload, and the mean's by its name
    paper_from: str = ""
    mean: str = MEAN
    bounds: Bounds | None = None
    unit: str = RATIO


Place = Callable[[str], tuple[str, str]]  # panel and row of a workload, or of the mean


def in_panel(panel: str) -> Place:
    return lambda workload: (panel, workload)


def in_row(row: str, panel: str = "") -> Place:
    """Workloads, or the one that there is, as panels of rows that are something else."""
    return lambda workload: (panel or workload, row)


def _middle(values: list[float], mean: str) -> float:
    if mean == AVERAGE:
        return statistics.fmean(values)
    if min(values) <= 0:
        raise Missing("a mean of ratios needs them to be above zero")
    return stats.geometric_mean(values)


def _of_workload(results: Results, column: Column, workload: str, seeds: tuple[int, ...]) -> Cell:
    cell = Cell("", "", column.series, None)
    try:
        values = [column.value(results, workload, seed) for seed in seeds]
        middle = _middle(values, column.mean if min(values) > 0 else AVERAGE)
        cell = replace(cell, ours=middle, seeds_low=min(values), seeds_high=max(values))
    except Missing as why:
        return replace(cell, note=str(why))
    return _bounded(results, column, cell, workload, seeds)


def _bounded(results: Results, column: Column, cell: Cell, workload: str, seeds: tuple[int, ...]) -> Cell:
    """With its bound, and a flag by what is printed: the cell's number beyond that bound, or below software's."""
    if column.bounds is None:
        return cell
    try:
        signals = column.bounds.signals(results, workload, seeds[0])
        software = _middle([column.bounds.software(results, workload, seed) for seed in seeds], column.mean)
    except Missing as why:
        return replace(cell, note=f"no bound: {why}")
    flag = ABOVE if cell.ours > signals * (1 + LEVEL) else BEHIND if cell.ours < software * (1 - LEVEL) else ""
    return replace(cell, bound=signals, flag=flag)


def interval(by_workload: list[float], mean: str) -> intervals.Bounds:
    """Of the mean, over workloads."""
    return intervals.of_mean(by_workload) if mean == AVERAGE else intervals.of_geometric_mean(by_workload)


def _mean(results: Results, column: Column, workloads: list[str], seeds: tuple[int, ...]) -> Cell:
    """Over the workloads that have a number with every seed."""
    there: dict[str, list[float]] = {}
    why = ""
    for workload in workloads:
        try:
            values = [column.value(results, workload, seed) for seed in seeds]
            _middle(values, column.mean)
            there[workload] = values
        except Missing as missing:
            why = str(missing)
    if not there:
        return Cell("", "", column.series, None, note=why)
    by_seed = [_middle([values[at] for values in there.values()], column.mean) for at in range(len(seeds))]
    low, high = interval([_middle(values, column.mean) for values in there.values()], column.mean)
    note = f"of {len(there)} of {len(workloads)}" if len(there) < len(workloads) else ""
    middle = _middle(by_seed, column.mean)
    return Cell("", "", column.series, middle, min(by_seed), max(by_seed), low, high, note=note)


def cells(results: Results, column: Column, workloads: list[str], seeds: tuple[int, ...], place: Place) -> list[Cell]:
    """A cell for each workload and one for the mean of them."""
    found = {workload: _of_workload(results, column, workload, seeds) for workload in workloads}
    found[column.mean] = _mean(results, column, workloads, seeds)
    placed = []
    for name, cell in found.items():
        panel, row = place(name)
        paper = column.paper.get(name)
        where = column.paper_from if paper is not None else ""
        placed.append(replace(cell, panel=panel, row=row, paper=paper, paper_from=where, unit=column.unit))
    return placed
