"""Time in malloc by the length of a call: what shares, medians and means are computed from."""

from collections.abc import Callable

import numpy as np

from annex_lab.sim.figures.metrics import FREE_LENGTHS, MALLOC_LENGTHS
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.values import Missing, Results, Value

Make = Callable[[str, int], Spec]
BELOW, CALLS, CYCLES = range(3)  # columns
ENDLESS = float("inf")
SLOW = 512  # cycles: a call that has missed in the thread cache
START = 16384  # cycles: longer are one or two calls of a run, in which the allocator makes itself ready
FUNCTIONS = {"malloc": (MALLOC_LENGTHS,), "malloc and free": (MALLOC_LENGTHS, FREE_LENGTHS)}


def halves(octaves: int) -> list[int]:
    """0, and from 8 on two steps for every power of two."""
    return [0, *(step << octave for octave in range(octaves) for step in (8, 11))]


def quarters(octaves: int) -> list[int]:
    return [0, *(step << octave for octave in range(octaves) for step in (8, 10, 12, 14))]


def within(lengths: np.ndarray, low: float, high: float) -> np.ndarray:
    """Calls of `low` cycles or more and of less than `high`: a bin is in it whole or not at all."""
    return lengths[(lengths[:, BELOW] > low) & (lengths[:, BELOW] <= high)]


def share_of_time(
    make: Make, low: float, high: float, over: Make | None = None, of: tuple[float, float] = (0, ENDLESS)
) -> Value:
    """Cycles in calls of these lengths, over those in all calls, or in calls of other lengths, of a run or another."""

    def value(results: Results, workload: str, seed: int) -> float:
        mine = results.get(make(workload, seed), MALLOC_LENGTHS)
        whole = within(results.get((over or make)(workload, seed), MALLOC_LENGTHS), *of)[:, CYCLES].sum()
        if whole == 0:
            raise Missing("no time in malloc")
        return within(mine, low, high)[:, CYCLES].sum() / whole

    return value


def cycles_within(make: Make, functions: tuple[str, ...], low: float, high: float) -> Value:
    """In calls of these lengths and functions."""

    def value(results: Results, workload: str, seed: int) -> float:
        found = (results.get(make(workload, seed), function) for function in functions)
        return float(sum(within(lengths, low, high)[:, CYCLES].sum() for lengths in found))

    return value


def share_of_calls(make: Make, low: float, high: float) -> Value:
    def value(results: Results, workload: str, seed: int) -> float:
        lengths = results.get(make(workload, seed), MALLOC_LENGTHS)
        if len(lengths) == 0:
            raise Missing("no calls of malloc")
        return within(lengths, low, high)[:, CALLS].sum() / lengths[:, CALLS].sum()

    return value


def median(make: Make) -> Value:
    """Over calls, in cycles: exact where it is below 128."""

    def value(results: Results, workload: str, seed: int) -> float:
        lengths = results.get(make(workload, seed), MALLOC_LENGTHS)
        if len(lengths) == 0:
            raise Missing("no calls of malloc")
        calls = lengths[:, CALLS].cumsum()
        return float(lengths[np.searchsorted(calls, calls[-1] / 2), BELOW] - 1)

    return value


def mean(make: Make, low: float, high: float) -> Value:
    """Of calls of these lengths, in cycles."""

    def value(results: Results, workload: str, seed: int) -> float:
        found = within(results.get(make(workload, seed), MALLOC_LENGTHS), low, high)
        if len(found) == 0:
            raise Missing("no calls of that length")
        return found[:, CYCLES].sum() / found[:, CALLS].sum()

    return value
