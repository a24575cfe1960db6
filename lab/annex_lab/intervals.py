"""All of the lab's 95 % intervals and rank correlations.

**Of a mean: Student's t.** Few values are averaged here, 5 to 30 rounds or some ten programs, and a percentile
bootstrap of so few is too narrow: its nominal 95 % hold the mean of five normal values in 83 of 100 cases, of ten in
90, and corrected for bias and skewness (BCa; Efron, "Better bootstrap confidence intervals", JASA 1987) in as few
(lab/tests/test_intervals.py counts). t (Student, "The probable error of a mean", Biometrika 1908) allows for what so
few say of their own spread. Ratios, and what is only ever compared by ratios (seconds, bytes), are averaged and bounded
as natural logarithms, in which they are symmetric; so a ratio's interval and its inverse's are inverses.

**Of a sum of independent means** (programs measured one by one, or two runs): the variances of the means add up, and
the degrees of freedom are Welch's and Satterthwaite's (Satterthwaite, "An approximate distribution of estimates of
variance components", Biometrics Bulletin 1946; Welch, "The generalization of Student's problem", Biometrika 1947).

**Of drawn parameters: percentiles.** Where all draws are of a model's assumed parameters nothing is inferred from a
sample: 95 % of the draws lie between the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

LEVEL = 0.95
ENOUGH = 3  # values: two may be near each other by luck, and t of them says as much: 12.7 times their error
_FIELDS = ("value", "variance", "degrees")
Bounds = tuple[float, float] | tuple[None, None]
NONE: Bounds = (None, None)


@dataclass(frozen=True)
class Mean:
    """A mean of a sample, or many side by side as arrays, with how sure it is. NaN where there is none."""

    value: np.ndarray
    variance: np.ndarray  # of the mean: s^2 / n; NaN where the sample is too small
    degrees: np.ndarray  # of freedom

    @classmethod
    def of(cls, sample) -> Mean:
        """Along the first axis, without NaNs."""
        values = np.asarray(sample, dtype=float)
        there = ~np.isnan(values)
        count = there.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(there, values, 0).sum(axis=0) / count
            squares = np.where(there, values - mean, 0) ** 2
            variance = squares.sum(axis=0) / (count - 1) / count
        return cls(mean, np.where(count >= ENOUGH, variance, np.nan), count - 1.0)

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The interval's ends; NaN where there is none."""
        from scipy.special import stdtrit  # here: most commands have no intervals, and start sooner without scipy

        # Equal values have no spread, and no degrees that matter.
        reach = np.where(self.variance == 0, 0, stdtrit(self.degrees, (1 + LEVEL) / 2) * np.sqrt(self.variance))
        return self.value - reach, self.value + reach


def _sum(means: Sequence[Mean], weight: Callable[[np.ndarray], np.ndarray]) -> Mean:
    """Of independent means times their weights, which depend on which of them there are; the others are left out."""
    value, variance, degrees = (np.stack([getattr(one, name) for one in means]) for name in _FIELDS)
    there = ~np.isnan(value)
    weights = weight(there)
    parts = np.where(there, weights**2 * variance, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        together = parts.sum(axis=0) ** 2 / np.where(parts > 0, parts**2 / degrees, 0).sum(axis=0)
    total = np.where(there, weights * value, 0).sum(axis=0)
    return Mean(np.where(there.any(axis=0), total, np.nan), parts.sum(axis=0), together)


def mean_of(means: Sequence[Mean]) -> Mean:
    """The mean of independent means, each with the same weight, of those that have a value."""
    return _sum(means, lambda there: 1 / np.maximum(there.sum(axis=0), 1) * np.ones(there.shape))


def difference(first: Mean, second: Mean) -> Mean:
    """first - second, which are independent; NaN where one of them is."""
    negative = Mean(-second.value, second.variance, second.degrees)
    return _sum([first, negative], lambda there: np.where(there.all(axis=0), 1.0, np.nan) + np.zeros(there.shape))


def _as_floats(low, high) -> Bounds:
    return NONE if math.isnan(low) or math.isnan(high) else (float(low), float(high))


def of_mean(values: Sequence[float]) -> Bounds:
    """Of their arithmetic mean, in their unit; none of fewer than ENOUGH."""
    return _as_floats(*Mean.of(values).bounds())


def of_geometric_mean(values: Sequence[float]) -> Bounds:
    """Of positive values' geometric mean, in their unit; none of fewer than ENOUGH."""
    return exponential(of_mean(np.log(values)))


def exponential(bounds: Bounds) -> Bounds:
    """Of a logarithm, as a ratio."""
    low, high = bounds
    return NONE if low is None or high is None else (math.exp(low), math.exp(high))


def of_draws(draws: Sequence[float]) -> tuple[float, float]:
    """Between which 95 % of a model's results lie, with its parameters drawn."""
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def rank_correlation(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Spearman's (equal values have the mean of their places); 0 where one of them ranks nothing."""
    from scipy.stats import spearmanr

    if len(set(ours)) == 1 or len(set(theirs)) == 1:
        return 0.0
    return float(spearmanr(ours, theirs).statistic)
