"""What Mallacc's figures make of runs: by hand, on runs that are made up here."""

import numpy as np
import pytest
from conftest import document_of

from annex_lab.sim.figures import host
from annex_lab.sim.figures.cli import shared
from annex_lab.sim.figures.figure import Choice
from annex_lab.sim.figures.mallacc import FIGURES, common, distance, distribution, times, validation
from annex_lab.sim.figures.values import MEAN, Missing, Results

BY_NAME = {figure.name: figure for figure in FIGURES}
TCMALLOC = (common.TCMALLOC,)


def lengths(*bins) -> np.ndarray:
    """Of (the first length beyond, calls, cycles)."""
    return np.array(bins, dtype=float).reshape(-1, 3)


def made(name: str, measured, workloads=(), allocators=TCMALLOC, seeds=(1,)):
    """The figure's cells by panel, row and series, where a run has what measured(spec) says."""
    choice = Choice(common.SCALES, allocators, workloads, seeds)
    specs = shared([BY_NAME[name]], choice)
    cells = BY_NAME[name].cells(choice, Results({spec: measured(spec) for spec in specs}, {}))
    return specs, {(cell.panel, cell.row, cell.series): cell for cell in cells}


# --- distributions ----------------------------------------------------------------------------------------------------

FAST_AND_SLOW = lengths((14, 6, 78), (31, 2, 60), (100, 1, 99), (101, 1, 100), (1152, 1, 1100))


def of_one(value) -> float:
    return value(Results({"run": {"malloc_lengths": FAST_AND_SLOW}}, {}), "xapian", 1)


def make(workload: str, seed: int) -> str:
    return "run"


def test_a_bin_is_where_its_calls_are():
    assert of_one(distribution.share_of_time(make, 0, 100)) == pytest.approx((78 + 60 + 99) / 1437)
    assert of_one(distribution.share_of_time(make, 13, 14)) == pytest.approx(78 / 1437)
    assert of_one(distribution.share_of_time(make, 14, 30)) == 0
    assert of_one(distribution.share_of_calls(make, 20, 40)) == pytest.approx(2 / 11)
    assert of_one(distribution.mean(make, 512, 16384)) == 1100
    parts = [
        of_one(distribution.share_of_time(make, low, high)) for low, high in ((0, 14), (14, 101), (101, float("inf")))
    ]
    assert sum(parts) == pytest.approx(1)


def test_a_share_may_be_of_calls_of_some_lengths_only():
    assert of_one(distribution.share_of_time(make, 0, 100, of=(0, 1000))) == pytest.approx(237 / 337)


def test_the_median_is_of_calls():
    assert of_one(distribution.median(make)) == 13


def test_no_calls_are_no_number():
    nothing = Results({"run": {"malloc_lengths": lengths()}}, {})
    for value in (distribution.median(make), distribution.share_of_calls(make, 0, 9), distribution.mean(make, 0, 9)):
        with pytest.raises(Missing):
            value(nothing, "xapian", 1)


@pytest.mark.parametrize("edges", [distribution.halves(15), distribution.quarters(8)])
def test_no_bin_of_the_simulators_lies_across_an_edge(edges):
    """Its bins are of one cycle below 128, then eight for every power of two (sim/guest/call_tracker.h)."""
    bounds = {*range(129), *((8 + step) << octave for octave in range(4, 30) for step in range(8))}
    assert edges == sorted(set(edges)) and set(edges) <= bounds


# --- figures ----------------------------------------------------------------------------------------------------------


def test_figures_of_software_need_no_run_that_figure_13_has_not():
    choice = Choice(common.SCALES, common.ALLOCATORS)
    there = set(shared([BY_NAME["13"]], choice))
    for name in ("1", "2", "6", "14", "15", "16", "table2"):
        assert set(shared([BY_NAME[name]], choice)) <= there, name


def test_table_2_is_what_of_the_programs_time_is_gone():
    took = {"": 1000, "mallacc": 996, "mallacc-limit": 1003}
    _, found = made("table2", lambda spec: {"cycles": took[spec.hardware]}, ("xapian", "cfrac"))
    mean = found[common.TCMALLOC, "mean", "32 entries"]
    assert mean.ours == pytest.approx(0.004) and mean.paper == 0.0043
    assert found[common.TCMALLOC, "xapian", "limit"].ours == pytest.approx(-0.003)
    assert found[common.TCMALLOC, "xapian", "32 entries"].paper == 0.0055


def test_table_2_has_a_test_where_seeds_differ():
    after = {1: 996, 2: 995, 3: 997}
    _, found = made(
        "table2",
        lambda spec: {"cycles": after[spec.seed] if spec.hardware == "mallacc" and spec.workload == "xapian" else 1000},
        ("xapian", "cfrac"),
        seeds=(1, 2, 3),
    )
    deviation = found[f"{common.TCMALLOC}: {times.DEVIATION}", "xapian", "32 entries"]
    assert deviation.ours == pytest.approx(0.001) and deviation.paper == 0.0005
    chance = found[f"{common.TCMALLOC}: {times.CHANCE}", "xapian", "32 entries"]
    t = 0.004 / (0.001 / 3**0.5)
    assert chance.ours == pytest.approx(0.5 - t / (2 * (2 + t**2) ** 0.5), rel=0.05)  # Student's, of two degrees
    assert chance.paper == 0.002
    alike = found[f"{common.TCMALLOC}: {times.CHANCE}", "cfrac", "32 entries"]
    assert alike.ours is None and alike.note == "all seeds are alike"


def test_table_1_is_of_this_machine():
    """Simulated in 0.9 s of the clock; measured in three rounds."""
    choice = Choice(common.SCALES, TCMALLOC, ("tp-warm", "gauss", "antagonist"), (1,))
    figure = BY_NAME["table1"]
    runs, measured = figure.runs(choice), figure.measurements(choice)
    assert {(spec.workload, spec.machine, spec.scale) for spec in runs} == {
        ("tp-warm", "host", 0.1),
        ("gauss", "host", 0.3),
    }
    assert [(one.workloads, one.scale) for one in measured] == [(("tp-warm",), 0.1), (("gauss",), 0.3)]
    here = {
        one: host.results(document_of({(name, "gperftools"): [(1.0, 9), (0.8, 9), (1.2, 9)] for name in one.workloads}))
        for one in measured
    }
    simulated = {spec: {"busy_seconds": 0.9 if spec.workload == "gauss" else 1.2} for spec in runs}
    found = {(cell.panel, cell.row): cell for cell in figure.cells(choice, Results(simulated | here, {}))}
    gauss = found[validation.ERROR, "gauss"]
    assert (gauss.ours, gauss.paper) == (pytest.approx(0.1), 0.0532)
    assert (gauss.seeds_low, gauss.seeds_high) == (pytest.approx(0.1), pytest.approx(0.25))
    assert found[validation.QUOTIENT, "tp-warm"].ours == pytest.approx(1.2)
    mean = found[validation.ERROR, "mean"]
    assert (mean.ours, mean.paper) == (pytest.approx(0.15), 0.0628)


def test_figure_2_has_the_papers_bound_where_it_gives_one():
    _, found = made("2", lambda spec: {"malloc_lengths": FAST_AND_SLOW}, ("xalan", "cfrac"))
    cell = found[common.TCMALLOC, "100", "xalan"]
    assert cell.ours == pytest.approx(237 / 1437) and cell.paper == 0.6 and "more than" in cell.paper_from
    assert found[common.TCMALLOC, "100", "cfrac"].paper is None
    assert found[common.TCMALLOC, str(1 << 20), "cfrac"].ours == 1


def test_figure_4_is_what_is_gone_without_a_step():
    took = {("size_class",): 90, ("sampling",): 96, ("pop", "push"): 85}

    def measured(spec) -> dict:
        free = tuple(sorted(s.split(".")[1].split("=")[0] for s in spec.settings if s.endswith("=free")))
        whole = 40 if spec.hardware == "mallacc-limit" else 100
        slow = (600, 1, 590)  # no fast path
        return {
            "malloc_lengths": lengths((30, 9, took.get(free, whole)), slow),
            "free_lengths": lengths((20, 9, 100), slow),
        }

    specs, found = made("4", measured, ("tp-warm",))
    assert len(specs) == 5
    for what, part in (("malloc", 1), ("malloc and free", 0.5)):
        panel = f"{common.TCMALLOC}: {what}"
        ours = {series: cell.ours for (at, row, series), cell in found.items() if (at, row) == (panel, "tp-warm")}
        expected = {"size class": 0.10, "sampling": 0.04, "push and pop": 0.15, "all": 0.60}
        assert ours == pytest.approx({series: part * of for series, of in expected.items()})
        assert found[panel, "mean", "all"].paper == 0.5


def test_in_figure_4_what_is_not_left_out_is_softwares():
    for spec in shared([BY_NAME["4"]], Choice(common.SCALES, TCMALLOC, ("tp-warm",), (1,))):
        assert not any(setting.endswith("=unit") for setting in spec.settings)
        assert len(spec.settings) in (0, 4)


def test_figure_6_counts_the_most_used_classes_first():
    _, found = made("6", lambda spec: {"blocks_asked": [5, 60, 25, 10]}, ("xalan",))
    needed = f"{common.TCMALLOC}: size classes that serve so many of the calls"
    assert [found[needed, "xalan", level].ours for level in ("50 %", "90 %", "99 %", "all")] == [1, 3, 4, 4]
    assert found[needed, "xalan", "90 %"].paper == 30 and found[needed, "xalan", "50 %"].paper == 2
    assert found[common.TCMALLOC, "2", "xalan"].ours == pytest.approx(0.85)
    assert found[common.TCMALLOC, "40", "xalan"].ours == 1


def test_figures_15_and_16_are_shares_of_softwares_time():
    took = {"": lengths((26, 10, 250)), "mallacc": lengths((14, 10, 130)), "mallacc-limit": lengths((11, 10, 100))}

    def measured(spec) -> dict:
        of = took[spec.hardware]
        return {"malloc_lengths": of, common.MALLOC: of[:, 2].sum()}

    for name, workload in (("15", "xapian"), ("16", "xalan")):
        _, found = made(name, measured, (workload,))
        for case, whole in (("software", 1), ("32 entries", 0.52), ("limit", 0.4)):
            shares = [cell.ours for (panel, _, series), cell in found.items() if (panel, series) == (TCMALLOC[0], case)]
            assert sum(shares) == pytest.approx(whole)
        calls = f"{common.TCMALLOC}: its calls"
        assert found[calls, "median, cycles", "32 entries"].ours == 13
        assert found[calls, "median, cycles", "32 entries"].paper == (13 if workload == "xapian" else None)
        assert found[calls, "all time, over software's", "32 entries"].paper == pytest.approx(0.6)


def test_the_distance_is_of_what_is_left_when_a_cause_is_removed():
    """A start of 20,000 cycles in every run, which the unit does not shorten; longer runs have more calls."""

    def measured(spec) -> dict:
        times = 3 if spec.scale > common.SCALES[spec.workload] else 1
        each = {"": 20, "mallacc": 14, "mallacc-limit": 10}[spec.hardware]
        calls = 1000 * times
        start = (20480, 1, 20000)
        return {
            "malloc_lengths": lengths((each + 1, calls, each * calls), start),
            "free_lengths": lengths((11, calls, 10 * calls)),
        }

    _, found = made("distance", measured, ("xalan", "cfrac"))
    summary = {(row, series): cell for (panel, row, series), cell in found.items() if panel == distance.SUMMARY}
    assert summary[distance.EXPERIMENTS[0].removed, "malloc, 32 entries"].ours == pytest.approx(34 / 40)
    for row in ("the allocator's start", "the first third of longer runs", "slow calls"):
        assert summary[row, "malloc, 32 entries"].ours == pytest.approx(0.7)
        assert summary[row, "malloc and free, limit"].ours == pytest.approx(20 / 30)
    assert {cell.paper for (_, series), cell in summary.items() if series == "malloc, 32 entries"} == {0.7}
    assert found["slow calls", MEAN, "malloc, limit"].ours == pytest.approx(0.5)


def test_the_distances_runs_differ_in_what_is_removed_alone():
    choice = Choice(common.SCALES, TCMALLOC, ("xalan",), (1,))
    kinds = {
        (spec.allocator, spec.scale, tuple(s for s in spec.settings if s.startswith("core.")))
        for spec in shared([BY_NAME["distance"]], choice)
    }
    assert len(kinds) == 4  # the plain one; longer; without the fast path; narrower


def test_the_area_stands_beside_the_papers():
    cells = BY_NAME["area"].cells(Choice(common.SCALES, TCMALLOC), Results({}, {}))
    found = {(cell.panel, cell.row): cell for cell in cells}
    both = found["um2 at 28 nm, 16 entries", "both"]
    assert (both.ours, both.paper) == (1412 + 629, 873 + 346)
    sixteen, more = (found["um2 at 22 nm, by entries", entries] for entries in ("16", "64"))
    assert sixteen.low_95 < sixteen.ours < sixteen.high_95 and sixteen.ours < more.ours
