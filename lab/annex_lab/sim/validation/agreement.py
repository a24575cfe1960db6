"""How well two sets of figures agree: errors, their bias, ranks."""

import statistics

from annex_lab import stats


def ranks(values: list[float]) -> list[float]:
    """1 for the smallest; equal values have the mean of their places."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) + 1) / 2 for value in values]


def rank_correlation(ours: list[float], theirs: list[float]) -> float:
    """Spearman's; 0 where one of them ranks nothing."""
    first, second = ranks(ours), ranks(theirs)
    if len(set(first)) == 1 or len(set(second)) == 1:
        return 0.0
    return statistics.correlation(first, second)


def share_within(errors: list[float], bound: float) -> float:
    return sum(abs(error) <= bound for error in errors) / len(errors)


def bias(errors: list[float]) -> float:
    """The geometric mean of (1 + error), less 1."""
    return stats.geometric_mean([1 + error for error in errors]) - 1
