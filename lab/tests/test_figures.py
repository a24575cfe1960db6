"""The papers' figures from simulated runs: numbers from parts made up here, what is run again, a small real one."""

import csv
import dataclasses
import functools
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree
from pathlib import Path

import numpy
import pytest
import simulator
from conftest import document_of
from typer.testing import CliRunner

from annex_lab import cli, document, intervals
from annex_lab.sim import machines, run
from annex_lab.sim.figures import metrics, runner, values, write
from annex_lab.sim.figures.cells import ABOVE, BEHIND, COUNT, RATIO, SHARE, Cell
from annex_lab.sim.figures.cli import shared
from annex_lab.sim.figures.exgen.claims import OURS
from annex_lab.sim.figures.figure import Choice
from annex_lab.sim.figures.host import Measurement
from annex_lab.sim.figures.papers import PAPERS
from annex_lab.sim.figures.runs import Parts, Spec
from annex_lab.sim.figures.speedmalloc import FIGURES, common, ladder, memento, one_change, paper, share
from annex_lab.sim.figures.speedmalloc.speedups import OVER_EACH, OVER_HARDWARE, REDIS
from annex_lab.sim.figures.values import MEAN

BY_NAME = {figure.name: figure for figure in FIGURES}
MADE = [(paper, figure) for paper in PAPERS for figure in paper.figures if not figure.missing()]
OFFLOADED = ("annex", "speedmalloc", ("support_core.queue=64",))
simulated = simulator.needed


def choice(**more) -> Choice:
    asked = {"allocators": ("jemalloc", "tcmalloc", common.OURS), "workloads": ("larson", "xmalloc"), "seeds": (1,)}
    asked |= {"asked_for": True, "in_software": common.IN_SOFTWARE}
    return Choice(common.SCALES, **{**asked, **more})


def results(cycles, asked: Choice, name: str, **more) -> values.Results:
    """Of all runs of a figure; `cycles` says how long each takes, None: it failed. `more`: other metrics likewise."""
    specs = shared([BY_NAME[name]], asked)
    took = {spec: cycles(spec) for spec in specs}
    return values.Results(
        {
            spec: {"cycles": count, **{metric: of(spec) for metric, of in more.items()}}
            for spec, count in took.items()
            if count is not None
        },
        {spec: "the program failed (1)" for spec, count in took.items() if count is None},
    )


def at(cells: list[Cell], panel: str, row: str, series: str) -> Cell:
    (found,) = [cell for cell in cells if (cell.panel, cell.row, cell.series) == (panel, row, series)]
    return found


# --- numbers --------------------------------------------------------------------------------------------------------


def test_speedups_are_over_jemalloc_with_the_papers_beside_them():
    times = {("jemalloc", ""): 600, ("tcmalloc", ""): 300, ("annex-segregated", "speedmalloc"): 200}
    asked = choice()
    cells = BY_NAME["9"].cells(
        asked,
        results(
            lambda spec: times.get((spec.allocator, spec.hardware), 400) / (2 if spec.workload == "larson" else 1),
            asked,
            "9",
        ),
    )
    found = at(cells, "larson", "16", "tcmalloc")
    assert (found.ours, found.paper, found.paper_from) == (pytest.approx(2), 2.71, "Table 3")
    assert found.deviation == pytest.approx(2 / 2.71 - 1)
    found = at(cells, MEAN, "16", "annex-segregated + support core")
    assert found.ours == pytest.approx(3) and found.paper == 1.75 and found.deviation == pytest.approx(3 / 1.75 - 1)
    assert at(cells, "larson", "8", "tcmalloc").paper is None  # the text has means only
    assert at(cells, MEAN, "8", "annex-segregated + support core").paper == 1.73
    assert at(cells, OVER_EACH, "2", "tcmalloc").ours == pytest.approx(1.5)
    assert at(cells, OVER_EACH, "2", "tcmalloc").paper == 1.15
    assert at(cells, "larson", "16", "jemalloc").paper is None  # 1 by definition


def test_ours_needs_the_support_core_and_has_the_default_flavour_beside_it_in_software():
    asked = choice(allocators=common.ALLOCATORS, workloads=("larson",))
    runs = {(spec.allocator, spec.hardware) for spec in BY_NAME["9"].runs(asked)}
    assert {hardware for allocator, hardware in runs if allocator == common.OURS} == {common.SUPPORT}
    times = {("annex", ""): 300, ("annex", "speedmalloc"): 200, ("annex-segregated", "speedmalloc"): 100}
    made = results(lambda spec: times.get((spec.allocator, spec.hardware), 600), asked, "17")
    cells = BY_NAME["17"].cells(asked, made)
    assert at(cells, "annex-segregated, over itself in software", "larson", "speedmalloc").ours == pytest.approx(3)
    assert at(cells, "annex, over itself in software", "larson", "speedmalloc").ours == pytest.approx(1.5)
    assert at(cells, OVER_EACH, "larson", "jemalloc").ours == pytest.approx(6)
    made = results(lambda spec: 1, asked, "10", l2_stalls_main=lambda spec: 2, l2_stalls_all=lambda spec: 2,
                   busy_main=lambda spec: 4)  # fmt: skip
    named = {cell.series for cell in BY_NAME["10"].cells(asked, made)}
    assert "annex-segregated + support core / annex" in named and "annex-segregated" not in named


def test_what_is_left_is_over_each_in_software_with_metadata_together_and_apart():
    asked = choice(allocators=("jemalloc", "annex", common.OURS), workloads=("larson",))
    runs = {(spec.allocator, bool(spec.hardware), bool(spec.settings)) for spec in BY_NAME["left"].runs(asked)}
    software = {("jemalloc", False, False), ("annex", False, False)}
    assert runs == software | {("annex", True, False), ("annex", True, True), (common.OURS, True, False)}

    def cycles(spec: Spec) -> float:
        if spec.settings:
            return 100
        return (
            {"jemalloc": 600, "annex": 300}[spec.allocator]
            if not spec.hardware
            else {"annex": 400}.get(spec.allocator, 200)
        )

    made = results(
        cycles, asked, "left", instructions=lambda spec: 100, **{metrics.ALLOCATOR_INSTRUCTIONS: lambda spec: 6}
    )
    cells = BY_NAME["left"].cells(asked, made)
    together, apart = "annex + support core, over each in software", OVER_EACH
    assert at(cells, together, "larson", "annex").ours == 0.75 and at(cells, together, "larson", "annex").bound == 3
    found = at(cells, apart, "larson", "jemalloc")
    assert (found.ours, found.bound, found.paper) == (pytest.approx(3), 6, 3.19)
    assert at(cells, together, "larson", "jemalloc").paper is None
    assert at(cells, ladder.SHARES, "larson", "annex").ours == 0.06
    assert at(cells, "on the support core, over annex there", "larson", common.OURS).ours == 2


def test_workloads_that_take_long_have_one_seed_in_the_place_of_all():
    asked = choice(allocators=("jemalloc",), workloads=("larson", "gap-bfs"), seeds=(3, 1), one_seed=common.ONE_SEED)
    runs = {(spec.workload, spec.seed) for spec in BY_NAME["17"].runs(asked)}
    assert runs == {("larson", 3), ("larson", 1), ("gap-bfs", 3)}
    made = results(lambda spec: 100 * spec.seed if spec.hardware else 600, asked, "17")
    cells = BY_NAME["17"].cells(asked, made)
    found = at(cells, "jemalloc, over itself in software", "gap-bfs", "speedmalloc")
    assert found.ours == found.seeds_low == found.seeds_high == pytest.approx(2)
    mean = at(cells, "jemalloc, over itself in software", MEAN, "speedmalloc")
    assert (mean.seeds_low, mean.seeds_high) == pytest.approx((2, 12**0.5))


def test_the_papers_ratios_by_workload_have_its_means():
    for name, mean in (("jemalloc", 1.75), ("tcmalloc", 1.18), ("mimalloc3", 1.15)):
        known = paper.over(name)
        assert known.pop(MEAN) == mean and len(known) == 10
        product = 1.0
        for ratio in known.values():
            product *= ratio
        assert product ** (1 / 10) == pytest.approx(mean, abs=0.02)


def test_seeds_are_paired_and_means_have_two_intervals():
    """The second seed makes both twice as slow, the third the base alone."""
    asked = choice(allocators=("jemalloc",), workloads=("larson", "xmalloc", "mstress"), seeds=(1, 2, 3))
    base = {1: 100, 2: 200, 3: 200}
    mine = {"larson": 50, "xmalloc": 100, "mstress": 200}

    def cycles(spec: Spec) -> float:
        return mine[spec.workload] * (2 if spec.seed == 2 else 1) if spec.hardware == "speedmalloc" else base[spec.seed]

    cells = BY_NAME["17"].cells(asked, results(cycles, asked, "17"))
    found = at(cells, "jemalloc, over itself in software", "larson", "speedmalloc")
    assert (found.seeds_low, found.seeds_high) == (2, 4) and found.ours == pytest.approx(16 ** (1 / 3))
    mean = at(cells, "jemalloc, over itself in software", MEAN, "speedmalloc")
    assert (mean.seeds_low, mean.seeds_high) == (pytest.approx(1), pytest.approx(2))
    assert mean.ours == pytest.approx(2 ** (1 / 3))
    of_workloads = intervals.of_geometric_mean([16 ** (1 / 3), 2 ** (1 / 3), 0.25 ** (1 / 3)])
    assert (mean.low_95, mean.high_95) == pytest.approx(of_workloads)
    assert mean.paper == 1.75 and not mean.note


def test_what_is_outside_its_bounds_is_flagged():
    """The number that is printed, by the bound that is printed beside it."""

    def cells_with(offloaded: float) -> Cell:
        times = {"": 100, common.SIGNALS: 50}

        def cycles(spec: Spec) -> float:
            return times[spec.settings or ""] if spec.settings or not spec.hardware else offloaded

        asked = choice(allocators=("annex",), workloads=("larson",))
        found = BY_NAME["17"].cells(asked, results(cycles, asked, "17"))
        return at(found, "annex, over itself in software", "larson", "speedmalloc")

    assert cells_with(80).flag == "" and cells_with(80).bound == 2
    assert cells_with(49).flag == ABOVE and cells_with(49.9).flag == ""  # 2.04 and 2.004 over 2
    assert cells_with(120).flag == BEHIND


def test_a_ladder_is_in_order_where_no_step_is_one_back():
    steps = {"": 100, "ic-malloc": 120, "ic-malloc-signals": 90, "ic-malloc-queues": 95, "speedmalloc": 80}
    back = {**steps, "speedmalloc": 95}
    asked = choice(allocators=("tcmalloc",))
    measured = results(lambda spec: (steps if spec.workload == "larson" else back)[spec.hardware], asked, "17")
    cells = BY_NAME["17"].cells(asked, measured)
    big, small = (at(cells, panel, "tcmalloc", "workloads") for panel in ladder.ORDERS)
    assert (big.ours, big.note) == (0, "of 2")
    assert (small.ours, small.note) == (1, "of 2")

    asked = choice(allocators=("tcmalloc",), workloads=("larson",), seeds=(1, 2, 3))
    measured = results(lambda spec: (back if spec.seed == 2 else steps)[spec.hardware], asked, "17")
    small = at(BY_NAME["17"].cells(asked, measured), list(ladder.ORDERS)[1], "tcmalloc", "workloads")
    assert (small.ours, small.seeds_low, small.seeds_high) == (1, 0, 1)  # the seeds' mean is in order

    signals = at(cells, "tcmalloc, over itself in software", MEAN, "ic-malloc-signals")
    assert signals.paper == 1.09
    assert at(cells, "tcmalloc, over itself in software", MEAN, "ic-malloc").paper is None


def test_what_a_failed_run_leaves_out():
    asked = choice()
    cells = BY_NAME["17"].cells(
        asked, results(lambda spec: None if spec.workload == "larson" and spec.hardware else 100, asked, "17")
    )
    panel = "jemalloc, over itself in software"
    lost = at(cells, panel, "larson", "speedmalloc")
    assert lost.ours is None and lost.note == "the program failed (1)" and lost.deviation is None
    mean = at(cells, panel, MEAN, "speedmalloc")
    assert mean.ours == 1 and mean.note == "of 1 of 2" and mean.low_95 is None  # of one there is no interval


def test_locked_instructions_that_are_saved_are_of_the_time_in_software():
    asked = choice(allocators=("jemalloc",), workloads=("larson", "xmalloc"))
    measured = results(
        lambda spec: 1,
        asked,
        "11",
        busy_main=lambda spec: 1000,
        busy_all=lambda spec: 1100 if spec.hardware else 1000,
        atomics_main=lambda spec: 20 if spec.hardware else 100 if spec.workload == "larson" else 60,
        atomics_all=lambda spec: 50 if spec.hardware else 100,
    )
    cells = BY_NAME["11"].cells(asked, measured)
    panel = "saved, of busy cycles in software, main cores"
    found = at(cells, panel, values.AVERAGE, "jemalloc + support core, of jemalloc's")
    assert found.ours == pytest.approx(0.06) and found.paper == 0.0357
    assert at(cells, "all cores, of jemalloc's busy cycles", "larson", "jemalloc + support core").ours == 0.05


MEMENTO_TIMES = {"": 600, "memento-plus": 400, "mallacc-16k": 480, "memento-plus-pages": 300, "speedmalloc": 200}


def test_memento_stands_beside_the_support_core():
    asked = choice()
    cells = BY_NAME["9"].cells(asked, results(lambda spec: MEMENTO_TIMES[spec.hardware], asked, "9"))
    found = at(cells, MEAN, "16", "tcmalloc + Memento+")
    assert found.ours == pytest.approx(1.5) and found.paper == 1.48 and found.paper_from == "6.2.1, a quotient"
    found = at(cells, OVER_HARDWARE, "16", "tcmalloc + Memento+")
    assert found.ours == pytest.approx(2) and found.paper == 1.18
    assert at(cells, OVER_HARDWARE, "8", "tcmalloc + Memento+").paper is None
    without = choice(allocators=("jemalloc", "annex"))  # it is built atop TCMalloc
    assert not [spec for spec in BY_NAME["9"].runs(without) if spec.hardware in common.ACCELERATORS]


def test_mementos_redis_has_a_mean_of_its_own():
    asked = choice(workloads=("espresso", "redis-replay-lpush", "redis-replay-sadd"))
    cells = BY_NAME["8"].cells(
        asked,
        results(
            lambda spec: MEMENTO_TIMES[spec.hardware] * (2 if spec.workload == "espresso" and spec.hardware else 1),
            asked,
            "8",
        ),
    )
    found = at(cells, REDIS, MEAN, "tcmalloc + Memento+")
    assert found.ours == pytest.approx(1.5) and found.paper == 1.1
    found = at(cells, "speedup over jemalloc", MEAN, "tcmalloc + Memento+")
    assert found.ours == pytest.approx(1.5 / 2 ** (1 / 3)) and found.paper is None


def test_of_how_many_workloads_memento_is_faster():
    asked = choice(allocators=("tcmalloc",), seeds=(1, 2))

    def cycles(spec: Spec) -> int:
        behind = spec.workload == "xmalloc" and spec.seed == 2 and spec.hardware == "memento-plus"
        return 700 if behind else MEMENTO_TIMES[spec.hardware]

    cells = BY_NAME["memento"].cells(asked, results(cycles, asked, "memento"))
    panel = "tcmalloc, over itself in software"
    assert at(cells, memento.FASTER, panel, "Memento+").ours == 1
    assert at(cells, memento.FASTER, panel, "with the page allocator").ours == 2
    assert at(cells, panel, "larson", "with the page allocator").ours == 2
    found = at(cells, "tcmalloc, over jemalloc in software", MEAN, "Memento+")
    assert found.paper == 1.48
    found = at(cells, "tcmalloc, the support core over it", "larson", "with the page allocator")
    assert found.ours == 1.5


def test_sizes_of_the_support_cores_cache():
    asked = choice(workloads=("sh6bench",), allocators=("annex",))
    cells = BY_NAME["14"].cells(
        asked,
        results(
            lambda spec: 100 if "support_core.l1d.bytes=1024" in spec.settings else 80,
            asked,
            "14",
            energy=lambda spec: 50 if "support_core.l1d.bytes=1024" in spec.settings else 44,
        ),
    )
    times, powers, energies = cells[:5], cells[5:10], cells[10:]
    assert powers[-1].ours == pytest.approx(44 / 50 / 0.8) and powers[-1].paper == pytest.approx(1.021)
    assert energies[-1].ours == pytest.approx(0.88) and energies[-1].paper is None
    cells = times
    assert [cell.row for cell in cells] == ["1 KiB", "2 KiB", "4 KiB", "8 KiB", "16 KiB"]
    assert cells[-1].ours == pytest.approx(0.8) and cells[-1].paper == pytest.approx(1 / 1.27, abs=0.001)
    assert [cell.paper for cell in cells[:-1]] == [None] * 4


def test_energys_error_bar_is_what_its_parameters_leave_open():
    """Two draws beside the nominal: both runs of a pair have the same, so that what they share cancels."""
    asked = choice(allocators=("tcmalloc",), seeds=(1, 2))
    software, offloaded = numpy.array([4.0, 8.0, 2.0]), numpy.array([2.0, 4.0, 1.0])

    def energy(spec: Spec) -> numpy.ndarray:
        of = offloaded if spec.hardware else software
        return of * (numpy.array([1, 1, 2]) if spec.workload == "larson" and not spec.hardware else 1)

    specs = BY_NAME["13"].runs(asked)
    cells = BY_NAME["13"].cells(asked, values.Results({spec: {"energy_drawn": energy(spec)} for spec in specs}, {}))
    found = at(cells, "each on the support core, over itself in software", "16", "tcmalloc")
    assert found.ours == pytest.approx(2) and (found.seeds_low, found.seeds_high) == (2, 2) and found.paper == 1.15
    assert found.low_95 == pytest.approx(2) and 2 < found.high_95 <= 8**0.5
    alone = at(cells, "each on the support core, over itself in software, 16 threads", "xmalloc", "tcmalloc")
    assert alone.low_95 == alone.high_95 == pytest.approx(2) and alone.paper is None


def lengths(*bins: tuple[int, int, int]) -> list[dict]:
    return [{"below": below, "calls": calls, "cycles": cycles} for below, calls, cycles in bins]


def part(**more) -> dict:
    """What annex-lab sim --json writes, as far as the figures read it; one main core and a support core."""
    core = {
        origin: {"miss_stalls": {"inside": 3, "other": 4}, "atomic_cycles": 5, "cycles": {"unit": 11}}
        for origin in ("program", "allocator")
    }
    return {
        "complete": True,
        "exit_status": 0,
        "ended": "exit",
        "simulator": "",
        "cycles": 1000,
        "instructions": 2000,
        "machine": {"thread_cores": 1, "ghz": 2.0},
        "cores": [
            {**core, "busy_cycles": 900, "instructions": 1900},
            {**core, "busy_cycles": 100, "instructions": 100},
        ],
        "all": {
            "program": {"cycles": {"dram": 300, "tlb": 40, "page_fault": 50, "system_call": 60}},
            "allocator": {
                "cycles": {
                    **{"atomic": 6, "coherence": 7, "base": 8, "dram": 20, "tlb": 1},
                    **{"page_fault": 3, "system_call": 4},
                },
                "instructions": 150,
                "atomics": 9,
            },
        },
        "allocator": {
            "l2_misses": {"inside": 1, "evicted": 2, "touched": 3, "evicted_and_touched": 4, "other": 5},
            "calls": 6,
            "cycles": 110,
            "functions": {
                "allocate": {"cycles": 70, "kernel_cycles": 10, "lengths": lengths((14, 2, 26), (40, 1, 34))},
                "free": {"calls": 4, "cycles": 35, "kernel_cycles": 5, "lengths": lengths((11, 3, 30))},
            },
        },
        "memory": {
            "pages": {"peak_resident": 4096, "average_resident": 2048.5},
            "llc": {"misses": {"program": {"load": 1, "store": 2}, "allocator": {"load": 3, "store": 4}}},
            "cores": [
                {
                    "l1d": {
                        "misses": {origin: {"load": 3, "store": 2} for origin in ("program", "allocator", "kernel")}
                    },
                    "stlb": {"misses": {"program": 5, "allocator": 6}},
                    "coherence": {"transfers": {"program": 7, "allocator": 8, "kernel": 0}},
                }
            ]
            * 2,
        },
        **more,
    }


def test_a_support_core_is_no_main_core():
    found = {name: of(part()) for name, of in metrics.METRICS.items()}
    assert (found["l2_stalls_main"], found["l2_stalls_all"]) == (14, 28)
    assert (found["atomics_main"], found["atomics_all"]) == (10, 20)
    assert (found["busy_main"], found["busy_all"]) == (900, 1000)
    assert (found[metrics.MAIN_INSTRUCTIONS], found["instructions"]) == (1900, 2000)
    assert found[metrics.L1D_MISSES] == 20
    assert found[metrics.BUSY_SECONDS] == pytest.approx(500e-9)
    assert (found[metrics.UNIT_WAITS], found[metrics.KERNEL_CYCLES]) == (22, 117)
    assert (found["l2_misses"], found["l2_misses_conflict"], found["l2_misses_metadata"]) == (15, 6, 7)
    assert found["allocator_synchronization"] == 13
    assert [found[name] for name in ("llc_load_misses", "llc_store_misses", "page_walks", "calls")] == [4, 6, 22, 6]
    assert found["miss_stalls"] == 361
    assert (found["allocator_cycles"], found["allocator_locked_instructions"]) == (110, 9)


def test_time_in_malloc_and_in_the_allocator_is_without_the_kernels(monkeypatch):
    monkeypatch.setattr(metrics, "energy", lambda of: {})
    found = metrics.measure(part(mallacc=MALLACC))
    assert (found["malloc_user_cycles"], found["allocator_user_cycles"]) == (60, 90)
    assert (found[metrics.CALL_CYCLES], found[metrics.CALL_KERNEL_CYCLES]) == (105, 15)
    assert found["mallacc_lookup_hits"] == 0.75 and found["blocks_asked"] == [1, 3]
    assert found["malloc_lengths"].tolist() == [[14, 2, 26], [40, 1, 34]]


SUPPORT_CORE = {
    "core": 1,
    "each": [{}],
    "malloc_queue": {"taken": 4, "waited": 40},
    "asked_to_answered": 100,
    "service": 90,
    "served": 9,
}
MALLACC = {
    **{"lookups": 8, "lookup_hits": 6},
    "blocks_asked": [{"class": 3, "blocks": 1}, {"class": 7, "blocks": 3}],
}


def test_what_is_asked_of_support_cores(monkeypatch):
    monkeypatch.setattr(metrics, "energy", lambda of: {})
    unit = {**SUPPORT_CORE, "each": [{}, {}]}
    cores = [
        {**core, "busy_cycles": busy} for core, busy in zip(3 * [part()["cores"][0]], (900, 300, 100), strict=True)
    ]
    found = metrics.measure(part(support_core=unit, cores=cores))
    assert (found["support_busy"], found["support_time"]) == (400, 2000)
    assert (found["malloc_to_pointer"], found["malloc_queued"], found["cycles_a_call"]) == (25, 10, 10)
    assert "support_busy" not in metrics.measure(part())


def test_the_share_of_allocation_has_its_speedups_beside_it():
    asked = choice(workloads=(), allocators=("annex",))
    measured = results(
        lambda spec: 120 if not spec.hardware else 100 if spec.hardware == "speedmalloc" else 90,
        asked,
        "share",
        instructions=lambda spec: 1000,
        allocator_instructions=lambda spec: 30,
    )
    cells = BY_NAME["share"].cells(asked, measured)
    assert at(cells, share.SHARES, "300", "annex").ours == 0.03
    assert at(cells, "speedup on the support core, over itself in software", "300", "annex").ours == 1.2
    assert len(cells) == 3 * 6


def test_more_support_cores_are_shown_by_main_cores():
    asked = choice(workloads=("mstress",), allocators=("jemalloc",))
    measured = results(
        lambda spec: 1000 if not spec.hardware else 400 if "support_core.cores=8" in spec.settings else 500,
        asked,
        "scaling",
        support_busy=lambda spec: 300,
        support_time=lambda spec: 600,
        malloc_to_pointer=lambda spec: 70,
        malloc_queued=lambda spec: 20,
    )
    cells = BY_NAME["scaling"].cells(asked, measured)
    assert at(cells, "mstress: speedup over software", "8", "64 main cores").ours == 2.5
    assert at(cells, "mstress: speedup over software", "1", "16 main cores").ours == 2
    assert at(cells, "mstress: a support core is busy, share of time", "4", "32 main cores").ours == 0.5
    assert at(cells, "mstress: malloc to pointer, cycles", "2", "16 main cores").ours == 70


# --- runs and parts -------------------------------------------------------------------------------------------------

SPEC = Spec("larson", "annex", 16, 1, 0.0003, "speedmalloc-16", "speedmalloc", ("support_core.link=0",))


def test_a_parts_name_has_all_that_it_depends_on():
    assert SPEC.part == "larson/annex/speedmalloc-16+speedmalloc+support_core.link=0/16t-seed1-scale0.0003.json"
    everything = [spec for figure in FIGURES for spec in figure.runs(choice(workloads=(), seeds=(1, 2)))]
    assert len({spec.part for spec in everything}) == len(set(everything))
    smaller = dataclasses.replace(SPEC, options=("--slots=200", "--max=100"))
    assert smaller.part.endswith("/16t-seed1-scale0.0003--slots=200--max=100.json")
    assert smaller.arguments[-3:] == ["--", "--slots=200", "--max=100"] and "--" not in SPEC.arguments
    assert smaller.asked.options == smaller.options
    assert {spec.workload for spec in everything} == set(common.SCALES)


def test_figures_share_runs():
    asked = choice()
    nine, seventeen = (shared([BY_NAME[name]], asked) for name in ("9", "17"))
    both = shared([BY_NAME["9"], BY_NAME["17"], BY_NAME["12"]], asked)
    assert len(both) == len(set(nine) | set(seventeen)) < len(nine) + len(seventeen)


@pytest.fixture
def parts(tmp_path, monkeypatch) -> Parts:
    """A folder of them, of a simulator that is a file of ours."""
    plugin = tmp_path / "plugin"
    plugin.write_text("the simulator")
    monkeypatch.setattr(run, "PLUGIN", plugin)
    monkeypatch.setattr(run, "qemu", lambda: "qemu")
    return Parts(tmp_path / "out/parts")


def put(parts: Parts, spec: Spec, found: dict) -> Path:
    file = parts.file(spec)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(found))
    later = time.time() + 1000  # than any library or preset
    os.utime(file, (later, later))
    return file


def test_what_is_there_is_not_run_again(parts):
    found = parts.find(SPEC)
    assert found.left and found.why == "not run"
    put(parts, SPEC, part(simulator=parts.simulator))
    assert parts.find(SPEC).part and not parts.find(SPEC).left


@pytest.mark.parametrize(
    ("found", "left", "why"),
    [
        (part(simulator="another"), True, "of another build"),
        ({"failure": {"why": "no such library"}}, True, "no such library"),
        ({"simulator": 1}, True, "of another build"),
        (part(complete=False, ended="hang", exit_status=124), False, "hang"),
        (part(exit_status=3), False, "the program failed (3)"),
        ([], True, "cannot be read"),
    ],
)
def test_parts_that_are_no_results(parts, found, left, why):
    if isinstance(found, dict) and found.get("simulator") == "":
        found["simulator"] = parts.simulator
    put(parts, SPEC, found)
    read = parts.find(SPEC)
    assert read.part is None and read.left == left and why in read.why


def test_a_part_older_than_its_allocator_is_run_again(parts):
    file = put(parts, SPEC, part(simulator=parts.simulator))
    os.utime(file, (10, 10))
    assert parts.find(SPEC).left and "older than" in parts.find(SPEC).why


def test_hardware_that_is_not_built_is_missing_and_not_left(parts):
    found = parts.find(Spec("larson", "annex", 16, 1, 0.1, "speedmalloc-16", "nonesuch"))
    assert not found.left and found.why == "hardware nonesuch is not built yet"


def test_a_run_that_cannot_start_leaves_a_part_that_says_so(parts):
    wrong = Spec("larson", "annex", 0, 1, 0.1, "speedmalloc-16")
    done: list[Spec] = []
    runner.run([wrong], parts, 2, done.append)
    found = parts.find(wrong)
    assert done == [wrong] and found.left and "ended with status 2" in found.why


@simulated
def test_a_run_of_before_is_taken_without_a_process(tmp_path):
    small = Spec("larson", "glibc", 2, 1, 0.0003, "speedmalloc-2", options=("--slots=200",))
    allocator, hardware, settings = OFFLOADED
    specs = [small, dataclasses.replace(small, allocator=allocator, hardware=hardware, settings=settings)]
    first, second = Parts(tmp_path / "first"), Parts(tmp_path / "second")
    for parts in (first, second):
        runner.run(specs, parts, 2, lambda spec: None)
    for spec in specs:
        assert not second.file(spec).with_suffix(".log").exists()
        assert first.find(spec).part and first.file(spec).read_text() == second.file(spec).read_text()


# --- the command ----------------------------------------------------------------------------------------------------


@pytest.fixture
def figures(parts, tmp_path, monkeypatch):
    """Runs the command; its simulations, and what is measured, are made up here: exit status, output, what was run."""
    units = [*ladder.RUNGS, *common.ACCELERATORS, memento.PAGES, "near-memory", "mallacc", "mallacc-limit"]
    monkeypatch.setattr(machines, "hardware", lambda: units)
    monkeypatch.setattr(
        metrics,
        "energy",
        lambda of: {"energy": of["cycles"], "energy_drawn": of["cycles"] * numpy.array([1, 0.9, 1.2])},
    )
    ran: list[Spec | Measurement] = []

    def simulate(left, parts, jobs, done):
        for spec in left:
            ran.append(spec)
            mallacc = spec.hardware.startswith("mallacc")
            more = {"mallacc": MALLACC} if mallacc else {"support_core": SUPPORT_CORE} if spec.hardware else {}
            slow = {"glibc": 3, "annex-offload-handshake": 2}.get(spec.allocator, 1)
            cycles = slow * (500 if spec.hardware else 1000) + (spec.seed - 1 if spec.hardware else 0)
            made = part(simulator=parts.simulator, cycles=cycles, **more)
            made["memory"]["cores"] = slow * made["memory"]["cores"]
            for function in made["allocator"]["functions"].values():  # more work is longer, and there is a slow call
                function["lengths"] = lengths((12, 9, 99 * spec.scale), (1152, 1, 1100 * spec.scale))
            made["instructions"] *= 1 + spec.scale  # the start, and the work
            made["layout"] = make.layouts.get(spec.seed, 0)
            made["host_cpu_s"] = make.taken
            for core in made["cores"]:
                core["busy_cycles"] *= 1 + spec.scale
            put(parts, spec, made)
            done(spec)

    def measure(one: Measurement, parts: Path) -> None:
        ran.append(one)
        taken = dict.fromkeys(itertools.product(one.programs, one.allocators), [(2.0, 3000)] * one.rounds)
        taken |= {(program, OURS): [(1.0, 2000)] * one.rounds for program in one.programs}
        file = parts / one.part
        file.parent.mkdir(parents=True, exist_ok=True)
        document.save(document_of(taken), file)
        os.utime(file, (time.time() + 1000,) * 2)

    monkeypatch.setattr(runner, "run", simulate)
    monkeypatch.setattr(Measurement, "measure", measure)

    def make(*arguments: str, of: str = "speedmalloc") -> tuple[int, str, int]:
        ran.clear()
        command = ["figures", of, *arguments, "--out", str(tmp_path / "out")]
        done = CliRunner().invoke(cli.app, command)
        return done.exit_code, done.output, len(ran)

    make.layouts = {}  # by seed; the others have QEMU's own
    make.taken = 1  # CPU seconds
    return make


SMALL = ("--workloads", "larson,xmalloc", "--allocators", "jemalloc,annex", "--seeds", "1")


def test_a_figure_is_a_table_a_picture_and_an_entry_of_the_index(figures, tmp_path):
    status, output, count = figures("17", *SMALL)
    assert status == 0 and count == 24, output  # 2 workloads, 2 allocators: software, four rungs, a bound
    out = tmp_path / "out"
    rows = list(csv.DictReader((out / "17.csv").open()))
    (row,) = [
        row
        for row in rows
        if (row["panel"], row["row"], row["series"]) == ("jemalloc, over itself in software", "larson", "speedmalloc")
    ]
    assert (row["figure"], row["ours"], row["paper"], row["deviation"]) == ("17", "2", "3.19", "-0.373041")
    assert row["paper_from"] == "Table 3, 6.2.1" and row["calls_for_nothing"] == "2" and not row["flag"]
    text = (out / "17.md").read_text()
    assert "| larson | 2.00 | 2.00 | 2.00 | 2.00 ≤ 2.00; paper 3.19, -37 % |" in text.replace(" ≤ 2.00 |", " |")
    picture = (out / "17.svg").read_text()
    assert xml.etree.ElementTree.fromstring(picture).tag.endswith("svg")
    index = (out / "figures.md").read_text()
    assert "| 17 | From an idle core to the support core | [table](17.md), [CSV](17.csv) | [SVG](17.svg) |" in index
    assert "| 9 | Speedups by threads | not made yet |" in index

    assert figures("17", *SMALL)[::2] == (0, 0)  # all is there
    assert (out / "17.svg").read_text() == picture
    lost = next((out / "parts/larson").rglob("*.json"))
    lost.unlink()
    assert figures("17", *SMALL)[::2] == (0, 1)
    (tmp_path / "plugin").write_text("another simulator")
    assert figures("17", *SMALL)[::2] == (0, 24)


@pytest.mark.parametrize(("layouts", "own"), [({1: 1, 2: 2}, True), ({}, False), ({2: 2}, False)])
def test_a_table_says_whether_its_seeds_had_addresses_of_their_own(figures, tmp_path, layouts, own):
    figures.layouts = layouts
    assert figures("17", *SMALL, "--seeds", "1,2")[0] == 0
    text = (tmp_path / "out/17.md").read_text()
    assert text.count(write.LAYOUTS) == own
    (tmp_path / "out").rename(tmp_path / "speedmalloc")
    CliRunner().invoke(cli.app, ["figures", "page", "--from", str(tmp_path)])
    assert (tmp_path / "index.html").read_text().count(write.LAYOUTS) == own


MALLACCS = ("perl-hashes", "xalan", "xapian")  # figures of a single workload


@pytest.mark.parametrize(("of", "figure"), MADE, ids=lambda made: made.name)
def test_each_figure_can_be_made(figures, tmp_path, of, figure):
    workloads = [
        name
        for name in ("larson", "xmalloc", "gap-bfs", "sh6bench", "mstress", "espresso", "tp-warm", "msgpass", *MALLACCS)
        if name in of.scales
    ]
    status, output, _ = figures(figure.name, "--workloads", ",".join(workloads), "--seeds", "1,2", of=of.name)
    assert status == 0, output
    name = figure.name
    rows = list(csv.DictReader((tmp_path / f"out/{name}.csv").open()))
    assert rows and all(row["ours"] for row in rows)
    # Of four figures the papers' texts have no number; of those that are not the papers', some have.
    silent = (of.name, name) in (("speedmalloc", "15"), ("mallacc", "17"), ("nextgen", "3.1.2"), ("nextgen", "3.2"))
    others = ("memento", "density", "left", "area", "distance", "pairs")
    in_text = (figure.kind != "" and not silent) or name in others
    assert any(row["paper"] for row in rows) == in_text
    assert (tmp_path / f"out/{name}.md").read_text().startswith(f"# {of.heading(figure)}\n")
    assert (tmp_path / f"out/{name}.svg").exists()


def test_a_number_that_is_missing_is_said(figures, monkeypatch, tmp_path):
    monkeypatch.setattr(machines, "hardware", lambda: ["speedmalloc"])
    status, output, _ = figures("17", *SMALL)
    assert status == 1 and "numbers are missing" in output
    assert "hardware ic-malloc is not built yet" in (tmp_path / "out/17.md").read_text()


def test_what_is_written_as_numbers_is_read_back(tmp_path):
    whole = Cell("a", "b", "c", 1.5, 1, 2, 1.25, 1.75, 3, "Table 1", 2, BEHIND, "why", COUNT)
    bare = Cell("a", "b", "d", None, note="not run")
    write.as_csv(BY_NAME["9"], [whole, bare], tmp_path / "9.csv")
    assert write.read_csv(tmp_path / "9.csv") == [whole, bare]


def test_one_page_has_all_that_is_made(figures, tmp_path):
    assert figures("17", *SMALL)[0] == 0
    (tmp_path / "out").rename(tmp_path / "speedmalloc")
    done = CliRunner().invoke(cli.app, ["figures", "page", "--from", str(tmp_path)])
    page = tmp_path / "index.html"
    assert done.exit_code == 0 and done.output.strip() == str(page)
    text = page.read_text()
    assert '<section id="speedmalloc-17">' in text and "data:image/svg+xml;base64," in text
    assert "2.00 ≤ 2.00; paper 3.19, -37 %" in text
    assert text.count("<section") == 1 and "Figure 9: Speedups by threads" in text and "not made yet" in text


def test_figures_that_cannot_be_made_are_said(figures, tmp_path):
    place = FIGURES.index(BY_NAME["15"])
    FIGURES[place] = dataclasses.replace(BY_NAME["15"], missing=lambda: "it needs a Haswell")
    try:
        status, output, count = figures("15")
        assert status == 0 and count == 0 and "Figure 15 is missing: it needs a Haswell" in " ".join(output.split())
        assert not (tmp_path / "out/15.md").exists()
        assert "missing: it needs a Haswell" in (tmp_path / "out/figures.md").read_text()
        status, output, count = figures("--list")
        assert status == 0 and count == 0 and "it needs a Haswell" in " ".join(output.split())
    finally:
        FIGURES[place] = BY_NAME["15"]


def test_a_partition_is_held_against_no_partition():
    asked = choice(workloads=("larson",), allocators=("tcmalloc", "jemalloc"))
    made = results(lambda spec: 80 if spec.settings == ("l2.allocator_ways=2",) else 100, asked, "15")
    cells = BY_NAME["15"].cells(asked, made)
    panel = "tcmalloc: speedup over no partition"
    assert {cell.panel for cell in cells} == {panel}
    assert [at(cells, panel, "larson", parts).ours for parts in ("7-1", "6-2", "4-4")] == [1, 1.25, 1]


def test_table_3_has_shares_and_speedups_beside_the_papers():
    asked = choice(workloads=("larson",), allocators=common.ALLOCATORS)
    cycles = {"jemalloc": 200, "tcmalloc": 100, "mimalloc3": 160, "annex": 80, "annex-segregated": 50}
    made = results(
        lambda spec: cycles[spec.allocator] / (2 if spec.hardware else 1),
        asked,
        "table3",
        instructions=lambda spec: 100,
        **{metrics.ALLOCATOR_INSTRUCTIONS: lambda spec: 6},
    )
    cells = BY_NAME["table3"].cells(asked, made)
    speedups = {cell.series: (cell.ours, cell.paper) for cell in cells if cell.row == "larson" and cell.unit == RATIO}
    assert speedups == {
        "tcmalloc": (2, 2.71),
        "mimalloc3": (1.25, 2.17),
        "annex": (2.5, None),
        "annex + support core": (pytest.approx(5), None),
        "annex-segregated + support core": (pytest.approx(8), 3.19),
    }
    assert [cell.paper for cell in cells if cell.unit == SHARE and cell.row == "larson"] == [0.0599]


def test_one_change_is_told_by_what_it_does_to_a_speedup():
    asked = choice(workloads=("larson",), allocators=common.PEERS)
    changed = {one_change.KERNEL_TIMES_5: {"jemalloc": 900, "tcmalloc": 200, "mimalloc3": 150}}
    as_it_is = {"jemalloc": 300, "tcmalloc": 100, "mimalloc3": 600, "jemalloc-1-arena": 450, "mimalloc2": 200}
    made = results(
        lambda spec: changed.get(spec.machine, as_it_is).get(spec.allocator, as_it_is.get(spec.allocator, 100)),
        asked,
        "one-change",
    )
    cells = BY_NAME["one-change"].cells(asked, made)
    kernel, arena = "the kernel's times by five", "jemalloc with one arena"
    assert at(cells, "larson", kernel, "tcmalloc").ours == pytest.approx(900 / 200 / (300 / 100))
    assert at(cells, "larson", kernel, "mimalloc3").ours == pytest.approx(900 / 150 / (300 / 600))
    assert at(cells, "larson", arena, "tcmalloc").ours == at(cells, "larson", arena, "mimalloc3").ours
    assert at(cells, "larson", arena, "tcmalloc").ours == at(cells, MEAN, arena, "tcmalloc").ours == pytest.approx(1.5)
    assert at(cells, "larson", "mimalloc 2", "mimalloc3").ours == pytest.approx(3)
    assert at(cells, "larson", "four memory channels", "tcmalloc").ours == 1
    assert not any(cell.row == "mimalloc 2" and cell.series == "tcmalloc" for cell in cells)  # does not concern it


def test_the_machines_of_one_change_are_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # whose folder is not the repository's
    for change in one_change.CHANGES.values():
        assert not change.machine or machines.find(change.machine, tmp_path).is_file()


def test_a_figure_has_allocators_of_its_own_unless_some_are_asked_for():
    everything = choice(workloads=("larson",), asked_for=False)
    figure = BY_NAME["16"]
    assert {spec.allocator for spec in shared([figure], everything)} == {"mimalloc3", "snmalloc", "annex"}
    asked = dataclasses.replace(everything, allocators=("mimalloc3",), asked_for=True)
    assert {spec.allocator for spec in shared([figure], asked)} == {"mimalloc3"}


def test_dry_runs_and_lists_run_nothing(figures, tmp_path):
    status, output, count = figures("12", *SMALL, "--dry-run")
    assert status == 0 and count == 0
    assert "8 runs, of which 8 are left" in output and output.count("annex-lab sim --part --cached") == 8
    status, output, count = figures("--list")
    assert status == 0 and count == 0 and "ready to be made" in " ".join(output.split())


def test_a_list_says_how_long_what_is_left_takes(figures):
    assert "?" in figures("12", *SMALL, "--list")[1]  # no run to go by
    figures.taken = 1800
    assert figures("12", *SMALL)[0] == 0
    listed = figures("12", *SMALL, "--seeds", "1,2", "--list")[1]
    assert re.search(r"16 +8 +4\.0 +ready", listed)  # eight runs of half an hour
    assert re.search(r"8 +0 +all runs", figures("12", *SMALL, "--list")[1])


def test_of_all_papers_what_is_measured_here_comes_after_the_simulations(figures):
    status, output, count = figures("--seeds", "1", "--dry-run", of="all")
    commands = [line.split()[1] for line in output.splitlines() if line.startswith("annex-lab ")]
    assert status == 0 and count == 0 and "4 measurements on this machine left" in output
    assert commands[-4:] == ["bench"] * 4 and set(commands[:-4]) == {"sim"} and len(commands) > 100


@pytest.mark.parametrize(
    "arguments",
    [["7"], ["--workloads", "nonesuch"], ["--allocators", "nonesuch"], ["--seeds", "one"], ["--seeds", ""]],
)
def test_wrong_usage(figures, arguments):
    assert figures(*arguments)[0] == 2


# --- a real one -----------------------------------------------------------------------------------------------------

TINY = ["17", "--workloads", "xmalloc", "--allocators", "annex", "--seeds", "1", "--scale-factor", "0.05"]


@simulated
def test_a_small_figure_goes_on_after_ctrl_c(tmp_path):
    command = [sys.executable, "-m", "annex_lab.cli", "figures", "speedmalloc", *TINY, "--out", str(tmp_path)]
    # Whoever runs the tests in the background may have SIGINT ignored, which children inherit.
    heed = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    first = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed)
    until = time.monotonic() + 120
    while not list(tmp_path.rglob("16t-*.json")) and time.monotonic() < until:
        time.sleep(0.05)
    first.send_signal(signal.SIGINT)
    _, said = first.communicate(timeout=60)
    assert first.returncode == 130 and "goes on from here" in said
    assert not list(tmp_path.rglob("*.unfinished")) and not (tmp_path / "17.md").exists()
    kept = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("16t-*.json")}
    assert kept

    second = subprocess.run(command, capture_output=True, text=True, timeout=300)
    whole = set(ladder.RUNGS) <= set(machines.hardware())
    assert second.returncode == (0 if whole else 1), second.stderr
    assert all(file.stat().st_mtime_ns == when for file, when in kept.items())
    rows = list(csv.DictReader((tmp_path / "17.csv").open()))
    (row,) = [row for row in rows if (row["row"], row["series"]) == ("xmalloc", "speedmalloc")]
    assert 0.05 < float(row["ours"]) < 5 and float(row["ours"]) < float(row["calls_for_nothing"]) * 1.05
    assert row["flag"] != ABOVE
