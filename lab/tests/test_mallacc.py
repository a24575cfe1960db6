"""Mallacc on whole programs: gperftools' TCMalloc with markers (peers/build gperftools-marked)."""

import copy
import json
import subprocess

import numpy as np
import pytest

from annex_lab import allocators, native, paths
from annex_lab.sim import invariants
from annex_lab.sim.figures.cli import shared
from annex_lab.sim.figures.figure import Choice
from annex_lab.sim.figures.mallacc import FIGURES, common, sizes
from annex_lab.sim.figures.values import MEAN, Results

ALLOCATOR = "gperftools-marked"
MACHINE = "haswell-1"

pytestmark = pytest.mark.skipif(
    not (paths.PEERS / f"{ALLOCATOR}.so").exists(), reason=f"peers/build {ALLOCATOR} has not been run"
)


@pytest.fixture(scope="module")
def simulate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mallacc")
    known = {}

    def run(workload, hardware="", settings=(), scale=0.0002, allocator=ALLOCATOR, options=(), seed=1, layout=1):
        key = (workload, hardware, settings, scale, allocator, options, seed, layout)
        if key not in known:
            out = folder / f"{len(known)}.json"
            command = [str(paths.ROOT / ".venv/bin/annex-lab"), "sim", "--machine", MACHINE, "--allocator", allocator]
            command += ["--json", str(out), "--seed", str(seed), "--layout", str(layout)]
            command += ["--hardware", hardware] if hardware else []
            for setting in settings:
                command += ["--set", setting]
            if options:
                program = native.workloads() / workload
                command += ["--", str(program), "--scale", str(scale), *options]
            else:
                command += ["--workload", workload, "--scale", str(scale)]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            known[key] = json.loads(out.read_text())
        return known[key]

    return run


def cycles(results):
    """All that a run without hardware has to say, but for the host's part."""
    return results["cycles"], results["all"], results["memory"], results["allocator"]


def test_a_malloc_cache_of_no_entries_changes_no_cycle(simulate):
    without, none = simulate("tp-small"), simulate("tp-small", "mallacc", ("mallacc.entries=0",))
    assert cycles(without) == cycles(none)
    assert "mallacc" not in none


def test_every_answer_is_what_software_gives(simulate):
    for workload in ("tp", "sized-deletes", "gauss-free"):
        scale = 0.002 if workload == "gauss-free" else 0.0002
        unit = simulate(workload, "mallacc", scale=scale)["mallacc"]
        assert unit["wrong_answers"] == unit["steps_without_end"] == 0
        assert unit["lookup_hits"] > 1000 or workload == "tp"
        assert unit["pops"] > 1000 and unit["pushes"] > 1000


def test_the_lengths_of_calls_add_up(simulate):
    for function in simulate("tp-small")["allocator"]["functions"].values():
        lengths = function["lengths"]
        assert sum(one["calls"] for one in lengths) == function["calls"]
        assert sum(one["cycles"] for one in lengths) == function["cycles"] - function["kernel_cycles"]
        short = sum(one["cycles"] for one in lengths if one["below"] <= 100)
        assert short == function["cycles_in_calls_below_100"]
        assert all(one["cycles"] < one["below"] * one["calls"] for one in lengths)


def test_blocks_are_counted_by_their_size_class_whoever_finds_it(simulate):
    """tp-small asks for four sizes in turn."""
    software = tuple(f"mallacc.{step}=software" for step in ("size_class", "sampling", "pop", "push"))
    runs = [simulate("tp-small", "mallacc", settings) for settings in ((), ("mallacc.entries=2",), software)]
    for results in [*runs, simulate("tp-small", "mallacc-limit")]:
        blocks = sorted((one["blocks"] for one in results["mallacc"]["blocks_asked"]), reverse=True)
        assert min(blocks[:4]) == pytest.approx(max(blocks[:4]), rel=0.01)
        assert sum(blocks[4:]) < 0.01 * sum(blocks)


def test_a_program_of_one_thread_has_no_luck(simulate):
    """At the same addresses."""
    one, two = (simulate("gauss-free", "mallacc", scale=0.002, seed=seed) for seed in (1, 2))
    assert cycles(one) == cycles(two) and one["mallacc"] == two["mallacc"]


def test_pops_hit_where_lists_have_two_blocks(simulate):
    cold = simulate("tp-small", "mallacc")["mallacc"]
    warm = simulate("tp-small", "mallacc", options=("--warm", "8"))["mallacc"]
    assert cold["pop_hits"] < cold["pops"] / 2
    assert warm["pop_hits"] > 0.98 * warm["pops"]
    assert warm["wrong_answers"] == 0


@pytest.mark.parametrize(("workload", "sizes", "per_size"), [("tp-small", 4, 1), ("sized-deletes", 8, 2)])
def test_the_knee_is_at_the_number_of_classes(simulate, workload, sizes, per_size):
    """Sizes in turn: all look-ups of the loop hit with as many entries as there are classes, and none with one less."""
    for entries in (sizes - 1, sizes):
        unit = simulate(workload, "mallacc", (f"mallacc.entries={entries}",))["mallacc"]
        of_malloc = unit["lookup_hits"] / unit["lookups"] * per_size
        # operator delete finds the class that operator new has just brought there.
        found = of_malloc - (per_size - 1)
        assert found > 0.95 if entries == sizes else found < 0.05


def test_unlimited_and_for_nothing_it_reaches_the_limit_study(simulate):
    """What is left are the misses: as many in a long run as in a short one, so that the longer part costs the same."""
    unlimited = ("mallacc.entries=4096", "mallacc.instructions=none", "mallacc.push=free")
    runs = {
        (name, scale): simulate("tp-small", hardware, settings, scale, options=("--warm", "8"))
        for name, hardware, settings in (("unit", "mallacc", unlimited), ("limit", "mallacc-limit", ()))
        for scale in (0.0002, 0.0004)
    }
    longer = {
        name: runs[name, 0.0004]["allocator"]["cycles"] - runs[name, 0.0002]["allocator"]["cycles"]
        for name in ("unit", "limit")
    }
    assert longer["unit"] == pytest.approx(longer["limit"], rel=0.01)
    assert runs["limit", 0.0004]["cycles"] <= runs["unit", 0.0004]["cycles"]


def test_the_limit_is_below_the_unit_and_the_unit_below_software(simulate):
    warm = ("--warm", "8")
    software, unit, limit = (
        simulate("tp-small", hardware, scale=0.001, options=warm)["allocator"]["functions"]["allocate"]["cycles"]
        for hardware in ("", "mallacc", "mallacc-limit")
    )
    assert limit < unit < software


def test_an_allocator_without_markers_is_left_alone(simulate):
    without, unit = (simulate("tp-small", hardware, allocator="glibc") for hardware in ("", "mallacc"))
    assert cycles(without) == cycles(unit)
    assert unit["mallacc"]["lookups"] == 0


def test_threads_on_one_core_find_what_software_finds(simulate):
    """Another thread's lists are not this one's: the cache is flushed when a core goes to another thread."""
    results = simulate("larson", "mallacc", ("system.slice_us=20",), 0.00005, options=("--threads", "3"))
    assert results["mallacc"]["flushes"] > 10
    assert results["mallacc"]["wrong_answers"] == 0


def test_a_wrong_answer_is_no_result(simulate):
    results = copy.deepcopy(simulate("tp-small", "mallacc"))
    assert invariants.violations(results) == []
    results["mallacc"]["wrong_answers"] = 1
    assert invariants.violations(results) == ["malloc cache: answers that software does not give: 1 is not 0"]


@pytest.mark.parametrize("flavour", ["annex-marked", "annex-solo-marked"])
def test_annex_with_markers(simulate, flavour):
    """Its lists are filled by its slow path alone; what pops hit is what software pops."""
    if not (paths.RELEASE / f"lib{flavour}.so").exists():
        pytest.skip(f"cmake --build --preset release --target {flavour}-shared")
    unit = simulate("gauss-free", "mallacc", scale=0.002, allocator=flavour)["mallacc"]
    assert unit["wrong_answers"] == 0
    assert unit["lookup_hits"] > 0.9 * unit["lookups"] > 0
    assert unit["pop_hits"] > 0.5 * unit["pops"]


def test_the_marked_peer_is_known():
    assert allocators.find(ALLOCATOR).library.name == f"{ALLOCATOR}.so"


def made_up(figure, choice, cycles):
    """The figure's cells, where a run takes as many cycles as that says by its hardware and settings."""
    specs = shared([figure], choice)
    start = 20000
    measured = {
        spec: {
            common.MALLOC: cycles(spec) + start,
            common.ALLOCATOR: 2 * cycles(spec) + start,
            "malloc_lengths": np.array([(64, 2, cycles(spec)), (20480, 1, start)], dtype=float),
            "mallacc_lookup_hits": 0.5,
        }
        for spec in specs
    }
    return specs, figure.cells(choice, Results(measured, {}))


def test_figure_17_is_time_over_software_by_entries():
    figure = next(figure for figure in FIGURES if figure.name == "17")
    choice = Choice(common.SCALES, common.ALLOCATORS, ("tp-small-warm",), (1,))
    took = {(): 100, **{(f"mallacc.entries={n}",): 110 if n < 4 else 90 for n in sizes.ENTRIES}}
    specs, cells = made_up(figure, choice, lambda spec: 80 if spec.hardware == "mallacc-limit" else took[spec.settings])
    assert len(specs) == 2 + len(sizes.ENTRIES) and {spec.machine for spec in specs} == {"haswell-1"}
    found = {(cell.row, cell.series): cell.ours for cell in cells}
    assert found["3", "Mallacc"] == pytest.approx(1.1) and found["4", "Mallacc"] == pytest.approx(0.9)
    assert found["32", "limit"] == pytest.approx(0.8)


def test_figures_13_and_14_have_the_papers_means_beside_ours():
    choice = Choice(common.SCALES, common.ALLOCATORS, ("xalan", "cfrac"), (1,))
    took = {"": 100, "mallacc": 90, "mallacc-limit": 80}
    for figure, paper in (("13", 0.82), ("14", 0.70)):
        figure = next(one for one in FIGURES if one.name == figure)
        _, cells = made_up(figure, choice, lambda spec: took[spec.hardware])
        means = {cell.panel: cell for cell in cells if cell.row == MEAN and cell.series == "32 entries"}
        assert all(cell.paper == pytest.approx(paper) for cell in means.values())
        for name in common.ALLOCATORS:
            assert means[f"{name}, after its start"].ours == pytest.approx(0.9)
            assert means[name].ours > 0.99  # the start hides it
