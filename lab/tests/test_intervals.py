"""Intervals hold what they say they hold, on data whose mean is known; ranks are scipy's."""

import math

import numpy as np
import pytest
import scipy.stats

from annex_lab import intervals, stats
from annex_lab.intervals import Mean

SAMPLES = 4000  # of each size; the share of them that hold the mean is known to half a per cent
SPREAD = 0.3  # of the logarithms: what programs differ by in a speedup


def log_normal(count: int) -> np.ndarray:
    """Samples of that many values each, whose geometric mean is 1."""
    return np.exp(np.random.default_rng(7).normal(0, SPREAD, (SAMPLES, count)))


def share(bounds) -> float:
    return sum(low <= 1 <= high for low, high in bounds) / SAMPLES


def percentile_bootstrap(values: np.ndarray, statistic=np.mean) -> tuple[float, float]:
    """What the lab had before: the means of values drawn anew, between the 2.5th and 97.5th percentile."""
    drawn = np.log(values)[np.random.default_rng(1).integers(len(values), size=(400, len(values)))]
    return tuple(np.exp(np.quantile(statistic(drawn, axis=1), [0.025, 0.975])))


@pytest.mark.parametrize(("count", "before"), [(5, 0.83), (10, 0.90)])
def test_the_interval_of_few_values_holds_the_mean_in_95_of_100_samples(count, before):
    samples = log_normal(count)
    assert share(map(intervals.of_geometric_mean, samples)) == pytest.approx(0.95, abs=0.01)
    assert share(map(percentile_bootstrap, samples)) == pytest.approx(before, abs=0.015)  # nominally 95 %


@pytest.mark.parametrize(("count", "held"), [(5, 0.83), (10, 0.90)])
def test_correcting_a_bootstrap_for_bias_and_skewness_is_not_enough(count, held):
    samples = np.log(log_normal(count)[:1000])
    found = scipy.stats.bootstrap((samples,), np.mean, axis=1, n_resamples=400, method="BCa", random_state=1)
    low, high = found.confidence_interval
    assert np.mean((low <= 0) & (high >= 0)) == pytest.approx(held, abs=0.025)  # nominally 95 %


@pytest.mark.parametrize("rounds", [5, 8])
def test_the_interval_of_a_ratio_of_two_allocators(rounds):
    """Rounds of 2 % noise on a machine whose speed changes by 10 %. The lab had the means of the fastest quarters,
    which are of two of the rounds, and their bootstrap is too narrow."""
    stream = np.random.default_rng(3)
    speed = stream.normal(0, 0.1, (SAMPLES, rounds))
    one, other = (speed + stream.normal(0, 0.02, (SAMPLES, rounds)) for _ in range(2))

    held = [low <= 0 <= high for low, high in (Mean.of(pair).bounds() for pair in one - other)]
    assert np.mean(held) == pytest.approx(0.95, abs=0.01)

    def fastest(rows):
        return np.sort(rows, axis=-1)[..., : math.ceil(rounds / 4)].mean(axis=-1)

    drawn = stream.integers(rounds, size=(400, rounds))
    before = fastest(one[:, drawn]) - fastest(other[:, drawn])
    low, high = np.quantile(before, [0.025, 0.975], axis=1)
    assert np.mean((low <= 0) & (high >= 0)) < 0.90


def test_the_interval_of_a_mean_is_scipys():
    values = [0.8, 1.1, 0.95, 1.3, 1.02]
    expected = scipy.stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert intervals.of_mean(values) == pytest.approx(tuple(expected))
    low, high = intervals.of_geometric_mean(values)
    assert intervals.of_geometric_mean([1 / value for value in values]) == pytest.approx((1 / high, 1 / low))


def test_of_two_values_there_is_no_interval_and_of_equal_ones_no_width():
    assert intervals.of_mean([1.5, 1.6]) == intervals.of_geometric_mean([1.5]) == (None, None)
    assert intervals.of_mean([1.5, 1.5, 1.5]) == (1.5, 1.5)


def test_the_difference_of_two_runs_is_welchs():
    first, second = [1.0, 1.2, 1.1, 1.4], [0.9, 1.0, 0.7, 0.8, 1.05]
    expected = scipy.stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    found = intervals.difference(Mean.of(first), Mean.of(second))
    assert found.bounds() == pytest.approx(tuple(expected))
    assert math.isnan(intervals.difference(Mean.of([]), Mean.of(second)).value)


def test_a_mean_over_programs_has_the_noise_of_all_of_them():
    """Programs of different noise and number of rounds: nominal 95 % hold the mean of their means."""
    stream = np.random.default_rng(5)
    programs = [(5, 0.05, 0.3), (5, 0.01, -0.2), (8, 0.02, 0.1)]  # rounds, noise, true value
    truth = np.mean([value for _, _, value in programs])
    held = 0
    for _ in range(SAMPLES):
        means = [Mean.of(stream.normal(value, noise, rounds)) for rounds, noise, value in programs]
        low, high = intervals.mean_of(means).bounds()
        held += low <= truth <= high
    assert held / SAMPLES == pytest.approx(0.95, abs=0.015)


def test_what_is_missing_is_left_out_pair_by_pair():
    nan = math.nan
    means = [Mean.of([[1.0, nan], [1.2, nan], [1.1, 2.0]]), Mean.of([[2.0, 4.0], [2.2, 4.1], [2.1, 4.2]])]
    assert means[0].value == pytest.approx([1.1, 2.0]) and np.isnan(means[0].variance[1])
    both = intervals.mean_of(means)
    assert both.value == pytest.approx([1.6, 3.05])
    low, _ = both.bounds()
    assert low[0] < 1.6 and math.isnan(low[1])  # of a single round nobody knows the noise


def test_drawn_parameters_have_a_range():
    assert intervals.of_draws(np.arange(1001) / 1000) == pytest.approx((0.025, 0.975))


def test_rank_correlation_is_spearmans():
    stream = np.random.default_rng(2)
    for _ in range(20):
        ours, theirs = stream.integers(0, 5, (2, 8))  # with equal ones
        if len(set(ours)) > 1 and len(set(theirs)) > 1:
            expected = np.corrcoef(scipy.stats.rankdata(ours), scipy.stats.rankdata(theirs))[0, 1]
            assert intervals.rank_correlation(ours, theirs) == pytest.approx(expected)
    # By hand: ranks 1, 2.5, 2.5, 4 and 1, 3, 2, 4: covariance 4.5, variances 4.5 and 5.
    assert intervals.rank_correlation([1, 2, 2, 3], [1, 3, 2, 4]) == pytest.approx(4.5 / (4.5 * 5) ** 0.5)
    assert intervals.rank_correlation([1, 1, 1], [1, 2, 3]) == 0


def test_summaries_are_of_the_same_module():
    rounds = {"one": [1.0, 1.1, 1.2, 0.9], "other": [2.0, 2.1, 2.6, 1.9]}
    results = [
        {"workload": "p", "allocator": name, "round": at, "user_s": value, "sys_s": 0.0, "score": 1, "peak_rss_kib": 1}
        | {"minor_faults": 0}
        for name, values in rounds.items()
        for at, value in enumerate(values)
    ]
    found = stats.Samples(results).ratio("p", "one", "other", "cpu_s")
    ratios = [a / b for a, b in zip(*rounds.values(), strict=True)]
    assert found.ratio == pytest.approx(scipy.stats.gmean(ratios))
    assert (found.low, found.high) == pytest.approx(intervals.of_geometric_mean(ratios))
