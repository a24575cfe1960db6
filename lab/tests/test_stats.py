"""Medians, groups, geometric means and their intervals; the tables made of them."""

import json

import pytest

from annex_lab import stats
from annex_lab.allocators import Allocator
from annex_lab.bench import Outcome, Result
from annex_lab.report import Report
from annex_lab.sample import Sample


@pytest.fixture
def programs(program):
    return [
        program("/bin/true", name="tiny"),
        program("/bin/true", name="big"),
        program("/bin/true", name="pattern", kind="workload"),
        program("/bin/true", name="server", suite="multi"),
    ]


def outcome_of(figures: dict[tuple[str, str], list[tuple[float, int]]]) -> Outcome:
    """figures: (program, allocator) -> (CPU seconds, peak KiB) of each round."""
    outcome = Outcome(glibc_peak_kib={"tiny": 3000, "big": 90000, "pattern": 50000, "server": 70000})
    for (name, allocator), rounds in figures.items():
        for round_, (cpu_s, peak) in enumerate(rounds):
            sample = Sample(cpu_s * 1.1, cpu_s * 0.75, cpu_s * 0.25, peak, 10)
            outcome.results.append(Result(name, allocator, round_, 1, sample, 0.0, False, 1))
    return outcome


@pytest.fixture
def outcome():
    noise = [0.98, 1.0, 1.02]
    return outcome_of(
        {
            (name, allocator): [(seconds * factor, peak) for factor in noise]
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
    )


def test_summary():
    summary = stats.summarize([1.0, 2.0, 4.0])
    assert (summary.median, summary.spread, summary.rounds) == (2.0, 1.5, 3)


def test_geometric_mean():
    assert stats.geometric_mean([0.5, 2.0]) == pytest.approx(1.0)


def test_groups_by_suite_kind_and_size(programs, outcome):
    groups = stats.groups(programs, outcome.glibc_peak_kib)
    assert groups["all"] == ["tiny", "big", "pattern", "server"]
    assert groups["single, small"] == ["tiny"]
    assert groups["single, large"] == ["big", "pattern"]
    assert groups["single, real programs"] == ["tiny", "big"]
    assert groups["multi"] == ["server"]
    assert "multi, large" not in groups  # would only repeat multi


def test_programs_without_a_reference_are_in_no_group(programs):
    assert stats.groups(programs, {"big": 90000}) == {"single": ["big"]}


def test_geomeans_compare_what_both_finished(programs, outcome):
    samples = stats.collect(outcome)
    found = stats.geomeans(samples, stats.groups(programs, outcome.glibc_peak_kib), ["annex-solo", "glibc"])
    by = {(g.group, g.allocator, g.against, g.metric): g for g in found}
    single = by["single", "annex-solo", "glibc", "cpu_s"]
    assert single.ratio == pytest.approx((2 * 0.25 * 0.5) ** (1 / 3))
    assert single.programs == 3
    assert single.low <= single.ratio <= single.high
    assert by["all", "annex-solo", "glibc", "cpu_s"].programs == 3  # the server has no figure for annex-solo
    assert ("multi", "annex-solo", "glibc", "cpu_s") not in by
    assert by["single", "glibc", "annex-solo", "cpu_s"].ratio == pytest.approx(1 / single.ratio)
    assert by["single, large", "annex-solo", "glibc", "peak_rss_kib"].ratio == pytest.approx(0.5**0.5)


def test_the_interval_is_wider_where_the_rounds_differ_more(programs):
    def interval(noise):
        outcome = outcome_of(
            {("big", "glibc"): [(1.0 + d, 1) for d in noise], ("big", "annex"): [(1.0 - d, 1) for d in noise]}
        )
        (found,) = [
            g
            for g in stats.geomeans(stats.collect(outcome), {"all": ["big"]}, ["annex", "glibc"])
            if g.allocator == "annex" and g.metric == "cpu_s"
        ]
        return found.high - found.low

    assert interval([-0.01, 0, 0.01]) < interval([-0.1, 0, 0.1])


def test_two_rounds_are_too_few_for_an_interval(programs):
    outcome = outcome_of({("big", "glibc"): [(1.0, 1), (1.1, 1)], ("big", "annex"): [(0.5, 1), (0.5, 1)]})
    found = stats.geomeans(stats.collect(outcome), {"all": ["big"]}, ["annex", "glibc"])
    assert found and all(one.low is None and one.high is None for one in found)


@pytest.fixture
def report(programs, outcome):
    allocators = [Allocator("annex-solo", None, "1"), Allocator("glibc", None, "2")]
    return Report(outcome, programs, allocators, {"command": "annex-lab bench", "rounds": 3})


def test_losses_are_shown_as_plainly_as_wins(report):
    text = report.as_markdown()
    small = next(line for line in text.splitlines() if line.startswith("| single, small"))
    large = next(line for line in text.splitlines() if line.startswith("| single, large"))
    assert "**2.000**" in small
    assert "0.354" in large and "**" not in large
    assert "| server | failed |" in text


def test_json_has_what_tools_need(report):
    data = json.loads(json.dumps(report.as_json()))
    entry = data["results"][0]
    wanted = {
        "workload",
        "allocator",
        "threads",
        "round",
        "wall_s",
        "user_s",
        "sys_s",
        "peak_rss_kib",
        "minor_faults",
        "voluntary_switches",
        "involuntary_switches",
        "score",
    }
    assert wanted <= set(entry)
    assert {"group", "allocator", "against", "metric", "ratio"} <= set(data["geomeans"][0])
    assert data["allocators"] == {"annex-solo": "1", "glibc": "2"}


def test_without_annex_everybody_is_compared_with_glibc(programs, outcome):
    allocators = [Allocator("glibc", None, "2"), Allocator("jemalloc", None, "3")]
    report = Report(outcome, programs, allocators, {"command": "c", "rounds": 3})
    assert report.subjects() == ["jemalloc"] and report.bases("jemalloc") == ["glibc"]


def test_behind_is_only_what_the_noise_does_not_explain():
    noisy = [0.9, 1.0, 1.1, 0.95, 1.05]
    samples = stats.collect(
        outcome_of(
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
    assert 1 < found.low <= found.ratio <= found.high
    assert stats.behind(samples, "annex-solo", "peak_rss_kib") == []


def test_page_faults_have_a_table(report):
    assert "## Page faults of each program\n" in report.as_markdown()


def test_losses_beyond_the_noise_are_listed(report):
    assert "| CPU time | tiny | glibc | 2.000 [2.000, 2.000] |" in report.as_markdown()
