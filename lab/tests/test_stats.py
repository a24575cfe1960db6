"""Medians, groups, paired ratios, geometric means and their intervals."""

import pytest
from conftest import document_of, results_of

from annex_lab import stats

PROGRAMS = {
    "tiny": {"glibc_peak_rss_kib": 3000},
    "big": {"glibc_peak_rss_kib": 90000},
    "pattern": {"glibc_peak_rss_kib": 50000, "kind": "workload"},
    "server": {"glibc_peak_rss_kib": 70000, "suite": "multi"},
}
NOISE = [0.98, 1.0, 1.02]

pytestmark = pytest.mark.usefixtures("small_groups")


@pytest.fixture
def document():
    figures = {
        (name, allocator): [(seconds * factor, peak) for factor in NOISE]
        for name, allocator, seconds, peak in [
            ("tiny", "glibc", 0.01, 3000),
            ("tiny", "annex-solo", 0.02, 3000),
            ("big", "glibc", 4.0, 90000),
            ("big", "annex-solo", 1.0, 45000),
            ("pattern", "glibc", 1.0, 50000),
            ("pattern", "annex-solo", 0.5, 50000),
            ("server", "glibc", 2.0, 70000),
        ]
    }
    return document_of(figures, PROGRAMS)


def test_summary():
    summary = stats.summarize([1.0, 2.0, 4.0])
    assert (summary.median, summary.spread, summary.rounds) == (2.0, 1.5, 3)


def test_geometric_mean():
    assert stats.geometric_mean([0.5, 2.0]) == pytest.approx(1.0)


def test_a_ratio_and_its_inverse_are_known_equally_well():
    assert stats.Ratio(0.5, 0.5 / 1.1, 0.55).half_width == pytest.approx(0.1)
    assert stats.Ratio(2.0, 1 / 0.55, 1.1 / 0.5).half_width == pytest.approx(0.1)
    assert stats.Ratio(2.0, None, None).half_width is None


def test_groups_by_suite_kind_and_size(document):
    groups = document["groups"]
    assert groups["all"] == ["tiny", "big", "pattern", "server"]
    assert groups["single, small"] == ["tiny"]
    assert groups["single, large"] == ["big", "pattern"]
    assert groups["single, real programs"] == ["tiny", "big"]
    assert groups["multi"] == ["server"]
    assert "multi, large" not in groups  # would only repeat multi


def test_programs_without_a_reference_are_in_no_group(document):
    for name in ("tiny", "pattern", "server"):
        document["programs"][name]["glibc_peak_rss_kib"] = None
    assert stats.groups(document["programs"]) == {"single": ["big"]}


def test_numbers_of_threads_are_groups(document):
    of = document["programs"]["server"]
    groups = stats.groups({"larson/2": of, "larson/16": of, "sort/2": of})
    assert groups["2 threads"] == ["larson/2", "sort/2"] and groups["16 threads"] == ["larson/16"]


def test_geomeans_compare_what_both_finished(document):
    by = {(g["group"], g["allocator"], g["against"], g["metric"]): g for g in document["geomeans"]}
    single = by["single", "annex-solo", "glibc", "cpu_s"]
    assert single["ratio"] == pytest.approx((2 * 0.25 * 0.5) ** (1 / 3))
    assert single["programs"] == 3
    assert single["low"] <= single["ratio"] * 1.0000001 and single["ratio"] <= single["high"] * 1.0000001
    assert by["all", "annex-solo", "glibc", "cpu_s"]["programs"] == 3  # the server has no figure for annex-solo
    assert ("multi", "annex-solo", "glibc", "cpu_s") not in by
    assert by["single", "glibc", "annex-solo", "cpu_s"]["ratio"] == pytest.approx(1 / single["ratio"])
    assert by["single, large", "annex-solo", "glibc", "peak_rss_kib"]["ratio"] == pytest.approx(0.5**0.5)


def ratio(figures):
    found = stats.Samples(results_of(figures)).ratio("big", "annex", "glibc", "cpu_s")
    assert found is not None
    return found


def test_a_machine_that_changes_its_speed_does_not_change_a_paired_ratio():
    speeds = [1.0, 1.5, 1.0, 1.5, 1.0]
    found = ratio({("big", "glibc"): [(s, 1) for s in speeds], ("big", "annex"): [(0.8 * s, 1) for s in speeds]})
    assert found.low == pytest.approx(0.8) and found.high == pytest.approx(0.8) and not found.within_noise


def test_the_interval_is_wider_where_the_rounds_differ_more():
    def width(noise):
        found = ratio({("big", "glibc"): [(1 + d, 1) for d in noise], ("big", "annex"): [(1 - d, 1) for d in noise]})
        assert found.within_noise
        return found.high - found.low

    assert width([-0.01, 0, 0.01]) < width([-0.1, 0, 0.1])


def test_only_rounds_that_both_have_are_compared():
    found = ratio({("big", "glibc"): [(1.0, 1), (2.0, 1), (4.0, 1)], ("big", "annex"): [(0.5, 1), (1.0, 1)]})
    assert found.ratio == pytest.approx(0.5) and found.low is None
    assert stats.Samples(results_of({("big", "glibc"): [(1.0, 1)]})).ratio("big", "annex", "glibc", "cpu_s") is None


def test_two_rounds_are_too_few_for_an_interval():
    found = document_of({("big", "glibc"): [(1.0, 1), (1.1, 1)], ("big", "annex"): [(0.5, 1), (0.5, 1)]})["geomeans"]
    assert found and all(one["low"] is None and one["high"] is None for one in found)


def test_behind_is_only_what_the_noise_does_not_explain():
    noisy = [0.9, 1.0, 1.1, 0.95, 1.05]
    samples = stats.Samples(
        results_of(
            {
                ("clear", "best"): [(1.0 * n, 1000) for n in noisy],
                ("clear", "worse"): [(1.5 * n, 1000) for n in noisy],
                ("clear", "annex-solo"): [(1.2 * n, 1000) for n in noisy],
                ("noise", "best"): [(n, 1000) for n in noisy],
                ("noise", "annex-solo"): [(1.01 * n, 1000) for n in reversed(noisy)],
                ("win", "best"): [(1.0, 1000)] * 5,
                ("win", "annex-solo"): [(0.5, 1000)] * 5,
                ("alone", "annex-solo"): [(0.5, 1000)] * 5,
            }
        )
    )
    (found,) = stats.behind(samples, "annex-solo", "cpu_s")
    assert (found.program, found.best, found.ratio) == ("clear", "best", pytest.approx(1.2))
    assert found.low > 1 and found.high >= found.low
    assert stats.behind(samples, "annex-solo", "peak_rss_kib") == []


def test_nothing_measured_is_no_error():
    assert stats.geomeans(stats.Samples([]), {}) == [] and stats.behind(stats.Samples([]), "annex", "cpu_s") == []
