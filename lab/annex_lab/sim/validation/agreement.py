"""How well two sets of figures agree: errors and their bias; ranks are in annex_lab.intervals."""

from annex_lab import stats


def share_within(errors: list[float], bound: float) -> float:
    return sum(abs(error) <= bound for error in errors) / len(errors)


def bias(errors: list[float]) -> float:
    """The geometric mean of (1 + error), less 1."""
    return stats.geometric_mean([1 + error for error in errors]) - 1
