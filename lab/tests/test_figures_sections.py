"""What the papers' texts say beside their numbered figures, and hardware that they set beside theirs."""

import re

import numpy
import pytest
from test_figures import BY_NAME, MEMENTO_TIMES, at, choice, results

from annex_lab.sim import machines
from annex_lab.sim.energy import arrays, units
from annex_lab.sim.figures import exgen, nextgen, values
from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.exgen import misses
from annex_lab.sim.figures.figure import Choice
from annex_lab.sim.figures.nextgen import near_memory, sensitivity
from annex_lab.sim.figures.speedmalloc import common, energy, kernel, saved
from annex_lab.sim.figures.speedmalloc.speedups import OVER_HARDWARE
from annex_lab.sim.figures.values import MEAN


def test_mallacc_of_16_kib_stands_beside_the_support_core_atop_a_tcmalloc_with_markers():
    asked = choice(workloads=("larson", "xmalloc", "espresso"))
    by_threads = {}
    for name in ("8", "9"):
        runs = [spec for spec in BY_NAME[name].runs(asked) if spec.hardware == common.MALLACC]
        assert {spec.allocator for spec in runs} == {"gperftools-marked"}
        by_threads[name] = BY_NAME[name].cells(asked, results(lambda spec: MEMENTO_TIMES[spec.hardware], asked, name))
    found = at(by_threads["9"], OVER_HARDWARE, "16", "gperftools-marked + Mallacc")
    assert found.ours == pytest.approx(2.4) and found.paper == 1.23
    found = at(by_threads["9"], MEAN, "16", "gperftools-marked + Mallacc")
    assert found.ours == pytest.approx(1.25) and found.paper == round(1.75 / 1.23, 2)
    found = at(by_threads["8"], OVER_HARDWARE, MEAN, "gperftools-marked + Mallacc")
    assert found.ours == pytest.approx(2.4) and found.paper == 1.03
    assert at(by_threads["8"], OVER_HARDWARE, MEAN, "tcmalloc + Memento+").paper is None


def test_mallaccs_16_kib_have_as_many_entries_as_fit():
    (entries,) = re.findall(r"^entries = (\d+)", (machines.HARDWARE / f"{common.MALLACC}.toml").read_text(), re.M)
    bits_of_an_entry = 152  # Mallacc 6.4
    assert int(entries) == 16 * 1024 * 8 // bits_of_an_entry
    searched = arrays.at_least(arrays.CAM, units.CAM_ENTRY_BYTES * int(entries))  # there is an estimate of its energy
    assert searched.read_pj > arrays.find(arrays.CAM, 1024).read_pj


def test_energy_is_held_against_accelerators_with_16_threads():
    asked = choice(allocators=("tcmalloc", "annex-segregated"))
    taken = {"": 4.0, "memento-plus": 3.0, "mallacc-16k": 5.0, "speedmalloc": 2.0}
    made = {
        spec: {"energy_drawn": taken[spec.hardware] * numpy.array([1.0, 1.1])} for spec in BY_NAME["13"].runs(asked)
    }
    cells = [
        cell for cell in BY_NAME["13"].cells(asked, values.Results(made, {})) if cell.panel == energy.OVER_HARDWARE
    ]
    assert {(cell.row, cell.series): (round(cell.ours, 6), cell.paper) for cell in cells} == {
        ("16", "tcmalloc + Memento+"): (1.5, 1.22),
        ("16", "gperftools-marked + Mallacc"): (2.5, 1.26),
    }


def test_the_parts_of_what_is_saved_add_up():
    asked = choice(workloads=("larson",), allocators=("jemalloc", "tcmalloc", "annex-segregated"))

    def of_both(there: float, here: float):
        return lambda spec: here if spec.hardware == "speedmalloc" else there

    made = results(
        of_both(1000, 600),
        asked,
        "6.2.2",
        l2_stalls_main=of_both(8000, 6400),
        atomics_main=of_both(1600, 160),
        unit_main=of_both(0, 800),
        instructions=lambda spec: (
            {"jemalloc": 1000, "tcmalloc": 880}.get(spec.allocator, 900) + 50 * bool(spec.hardware)
        ),
        instructions_main=lambda spec: 700 if spec.hardware == "speedmalloc" else 875,
    )
    cells = BY_NAME["6.2.2"].cells(asked, made)

    def found(panel: str, base: str = "tcmalloc") -> Cell:
        return at(cells, panel, values.AVERAGE, f"annex-segregated + support core, of {base}'s")

    ours = [found(panel).ours for panel in (saved.WHOLE, saved.L2, saved.LOCKED, saved.WAITING, saved.REST)]
    assert ours == pytest.approx([0.4, 0.1, 0.09, -0.05, 0.26])
    assert [found(panel).paper for panel in (saved.WHOLE, saved.L2, saved.LOCKED, saved.REST)] == [
        *(0.1530, 0.0478, 0.1199),
        None,
    ]
    assert found(saved.L2, "tcmalloc + Memento+").paper == 0.0373
    assert found(saved.LOCKED, "gperftools-marked + Mallacc").paper == 0.1034
    assert at(cells, saved.L2, values.AVERAGE, "tcmalloc + support core, of tcmalloc's").paper is None
    fewer = at(cells, saved.FEWER, values.AVERAGE, "tcmalloc")
    assert fewer.ours == pytest.approx(0.12) and fewer.paper == 0.111
    main = found("instructions saved, main cores")
    assert main.ours == pytest.approx(0.2) and main.paper == 0.0497


def test_what_remains_of_l2_misses_with_one_thread():
    asked = choice(workloads=("espresso",))
    made = results(
        lambda spec: 1,
        asked,
        "6.2.1",
        l2_stalls_main=lambda spec: 60 if spec.hardware else 80,
        l2_stalls_all=lambda spec: 90 if spec.hardware else 80,
    )
    cells = BY_NAME["6.2.1"].cells(asked, made)
    found = at(cells, "what remains, main cores", MEAN, "annex-segregated + support core / tcmalloc")
    assert found.ours == pytest.approx(0.75) and found.paper == pytest.approx(1 - 0.1469)
    assert at(cells, "what remains, all cores", "espresso", "jemalloc + support core / jemalloc").ours == 1.125


def test_the_kernels_share_is_of_calls_and_of_the_program():
    asked = choice(workloads=("larson", "espresso"), allocators=("jemalloc",))
    made = results(
        lambda spec: 1,
        asked,
        "2.1",
        allocator_call_cycles=lambda spec: 200,
        allocator_kernel_cycles=lambda spec: 30,
        kernel_cycles=lambda spec: 50,
        busy_all=lambda spec: 1000,
    )
    cells = BY_NAME["2.1"].cells(asked, made)
    for group in ("16 threads", "one thread"):
        found = at(cells, f"{kernel.OF_ALLOCATOR}, {group}", values.AVERAGE, "jemalloc")
        assert (found.ours, found.paper, found.paper_from) == (0.15, 0.10, "2.1, less than")
        assert at(cells, f"{kernel.OF_PROGRAM}, {group}", values.AVERAGE, "jemalloc").ours == 0.05


# --- NextGen-Malloc -------------------------------------------------------------------------------------------------


def of_nextgen(name: str, asked: Choice, measured) -> list[Cell]:
    (figure,) = [figure for figure in nextgen.FIGURES if figure.name == name]
    return figure.cells(asked, values.Results({spec: measured(spec) for spec in figure.runs(asked)}, {}))


def test_how_much_hangs_on_the_allocator():
    times = {"glibc": 172, "tcmalloc": 120, "mimalloc2": 100}
    asked = Choice(nextgen.PAPER.scales, tuple(times), seeds=(1,))

    def measured(spec) -> dict:
        slow = 4 if (spec.workload, spec.allocator) == ("xmalloc", "tcmalloc") else 1
        assert spec.threads == (1 if spec.workload == "xalan" else sensitivity.THREADS)
        return {"cycles": times[spec.allocator] * slow, "busy_all": 1000, "allocator_cycles": 30}

    cells = of_nextgen("1", asked, measured)
    found = at(cells, sensitivity.SPEEDUP, "xalan", "mimalloc2")
    assert (found.ours, found.paper) == (1.72, 1.72)
    assert at(cells, sensitivity.SPEEDUP, "xalan", "tcmalloc").paper is None
    found = at(cells, sensitivity.IN_IT, "xalan", "glibc")
    assert (found.ours, found.paper) == (pytest.approx(0.03), 0.02)
    found = [at(cells, sensitivity.SPREAD, workload, "time") for workload in ("xmalloc", "cache-scratch")]
    assert [cell.ours for cell in found] == pytest.approx([4.8, 1.72]) and found[0].paper == 10


def test_near_memory_is_of_the_runs_of_speedmallocs_figures():
    asked = Choice(nextgen.PAPER.scales, ("annex",), ("larson", "xmalloc"), (1,))
    times = {("", ()): 100, ("speedmalloc", ()): 80, ("near-memory", ()): 125, ("near-memory", common.SIGNALS): 50}
    elsewhere = set(BY_NAME["9"].runs(choice(allocators=("annex",))))

    def measured(spec) -> dict:
        assert spec in elsewhere or spec.hardware == "near-memory"
        return {"cycles": times[spec.hardware, spec.settings]}

    flags = {(): 160, ("support_core.flags=two",): 200}
    cells = of_nextgen("code1", asked, lambda spec: {"cycles": flags.get(spec.settings, 180) if spec.hardware else 100})
    assert at(cells, "annex: speedup over itself in software", "larson", "two flags").ours == 0.5

    cells = of_nextgen("3.2", asked, measured)
    panel = "annex: speedup over itself in software"
    assert [at(cells, panel, MEAN, series).ours for series in near_memory.VARIANTS] == pytest.approx([1.25, 0.8, 2])


# --- Exgen-Malloc ---------------------------------------------------------------------------------------------------


def test_misses_of_the_flavour_for_one_thread_are_over_each_others():
    asked = Choice(exgen.PAPER.scales, ("annex-solo", "dlmalloc"), ("espresso", "z3", "larson"), (1, 2))
    runs = misses.MISSES.runs(asked)
    assert {(spec.workload, spec.threads, spec.seed) for spec in runs} == {("espresso", 1, 1), ("larson", 1, 1)}

    def measured(spec) -> dict:
        ours = spec.allocator == "annex-solo"
        events = {"l1d_misses": 80 if ours else 100, "llc_load_misses": 9, "llc_store_misses": 1 if ours else 31}
        return {**events, "page_walks": 5, "instructions": 1000}

    cells = misses.MISSES.cells(asked, values.Results({spec: measured(spec) for spec in runs}, {}))
    assert {cell.panel.partition(",")[0]: cell.ours for cell in cells if cell.row == MEAN} == {
        "misses of the L1D": pytest.approx(0.8),
        "misses of the last level": pytest.approx(0.25),
        "page walks": 1,
        "instructions": 1,
    }
    assert misses.MISSES.runs(Choice(exgen.PAPER.scales, ("dlmalloc",))) == []
