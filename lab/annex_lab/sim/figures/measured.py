"""Cells of what is measured on this machine: ratios of medians over the rounds; the rounds stand for the seeds."""

import statistics
from collections.abc import Sequence
from dataclasses import replace

from annex_lab import stats
from annex_lab.sim.figures import host
from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.host import Measurement
from annex_lab.sim.figures.values import Missing, Results


def _by_round(samples: stats.Samples, program: str, allocator: str, metric: str) -> list[float]:
    values = samples.values(program, allocator, metric)
    if not values:
        raise Missing(f"{program} has no sample under {allocator}")
    return values


def _ratio(
    samples: stats.Samples, program: str, over: str, under: Sequence[str], metric: str
) -> tuple[float, float, float]:
    """The ratio of medians; and the lowest and the highest of one round."""
    above = _by_round(samples, program, over, metric)
    below = min((_by_round(samples, program, name, metric) for name in under), key=statistics.median)
    pairs = [a / b for a, b in zip(above, below, strict=False)]
    return statistics.median(above) / statistics.median(below), min(pairs), max(pairs)


def ratio(
    results: Results, measurement: Measurement, cell: Cell, program: str, over: str, under: Sequence[str], metric: str
) -> Cell:
    """The cell with the ratio of one allocator's metric to another's; of several the one whose median is the least."""
    try:
        samples = results.get(measurement, host.SAMPLES)
        ours, low, high = _ratio(samples, program, over, under, metric)
    except Missing as why:
        return replace(cell, note=str(why))
    return replace(cell, ours=ours, seeds_low=low, seeds_high=high)


def disturbed(results: Results, measurement: Measurement) -> str:
    """That other processes had a part in it, which a table has to say."""
    try:
        disturbed_ones, samples = results.get(measurement, host.DISTURBED)
    except Missing:
        return ""
    return f"{disturbed_ones} of {samples} samples disturbed by other processes" if disturbed_ones else ""


def on_this_machine(results: Results, measurement: Measurement) -> str:
    """How it is called in a table, with the number of its CPUs where that is known."""
    try:
        return f"measured with {results.get(measurement, host.CPUS)} CPUs"
    except Missing:
        return "measured"
