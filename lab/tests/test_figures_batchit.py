"""BatchIt's figures from runs made up here, and that the allocators built without batches really have none."""

import subprocess

import pytest
import simulator
from conftest import document_of
from test_sim import Simulator

from annex_lab import allocators, native, paths
from annex_lab.sim.figures import host, metrics
from annex_lab.sim.figures.batchit import (
    FIGURE_2,
    FIGURE_2_SECURE,
    FIGURE_3_SECURE,
    FIGURE_4,
    FIGURE_5,
    MANY_PAIRS,
    OVER_THE_BETTER,
    PAPER,
    effect,
)
from annex_lab.sim.figures.batchit.benchmarks import ALL, MESSAGES, SCALES
from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.figure import Choice
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.values import MEAN, Results


def choice(**more) -> Choice:
    return Choice(SCALES, **{"allocators": PAPER.allocators, "seeds": (1,), **more})


def cells(figure, asked: Choice, measured, here: dict | None = None) -> list[Cell]:
    """measured: the metrics of a run; here: (program, allocator) -> (CPU seconds, peak KiB) of each round."""
    found = {spec: measured(spec) for spec in figure.runs(asked)}
    if here:
        found |= {one: host.results(document_of(here)) for one in figure.measurements(asked)}
    return figure.cells(asked, Results(found, {}))


def at(found: list[Cell], panel: str, row: str) -> Cell:
    (one,) = [cell for cell in found if (cell.panel, cell.row) == (panel, row)]
    return one


def with_and_without(spec: Spec) -> dict:
    batched = not spec.allocator.endswith("-unbatched")
    return {
        "cycles": (80 if batched else 100) * spec.threads,
        "peak_resident": 100,
        metrics.ALLOCATOR_CYCLES: 45 if batched else 50,
        metrics.ALLOCATOR_INSTRUCTIONS: 50,
        metrics.ALLOCATOR_ATOMICS: 0 if spec.threads == 1 else 1 if batched else 10,
    }


def test_batches_are_held_against_the_same_allocator_without():
    found = cells(FIGURE_4, choice(), with_and_without)
    assert {cell.series for cell in found} == {"snmalloc", "annex"} and {cell.row for cell in found} == set(MESSAGES)
    assert all(cell.paper is None for cell in found if cell.series == "annex")
    assert {cell.ours for cell in found if "measured" in cell.panel} == {None}
    found = [cell for cell in found if cell.series == "snmalloc"]
    time = at(found, effect.TIME, "msgpass-2")
    assert time.ours == pytest.approx(0.8) and time.paper == pytest.approx(0.72) and "Figure 4" in time.paper_from
    assert at(found, effect.MEMORY, "msgpass-2").paper == 1
    assert at(found, "cycles in the allocator", "msgpass-16").ours == pytest.approx(0.9)
    assert at(found, "locked instructions in the allocator", "msgpass-1").ours == pytest.approx(0.1)


def test_secure_builds_are_held_against_the_same_without_batches():
    asked = PAPER.figures[2].chosen(choice(workloads=("xmalloc", "mstress", "cfrac")))
    assert FIGURE_2_SECURE is PAPER.figures[2] and FIGURE_2_SECURE.called == "Figure 2-secure"
    runs = {spec.allocator for spec in FIGURE_2_SECURE.runs(asked)}
    assert runs == {
        f"{name}{end}" for name in ("snmalloc-checks", "annex-hardened-near") for end in ("", "-unbatched")
    } and all(allocators.EXPERIMENTS_OF.get(name) for name in runs if name.endswith("-unbatched"))
    found = cells(FIGURE_2_SECURE, asked, with_and_without)
    (snmalloc,) = [
        cell
        for cell in found
        if (cell.panel, cell.row, cell.series) == (effect.TIME, "xmalloc-testN", "snmalloc-checks")
    ]
    assert snmalloc.ours == pytest.approx(0.8) and snmalloc.paper == pytest.approx(0.853)
    by_slab = FIGURE_3_SECURE.chosen(choice(workloads=("xmalloc", "mstress")))
    found = cells(FIGURE_3_SECURE, by_slab, with_and_without)
    assert {cell.series for cell in found} == {"annex-hardened-near-by-slab"}
    assert at(found, effect.TIME, "mstressN").paper == pytest.approx(1.06)


def test_there_is_a_core_for_each_of_32_pairs():
    runs = MANY_PAIRS.runs(choice())
    assert {(spec.threads, spec.machine) for spec in runs} == {(threads, "speedmalloc-64") for threads in (40, 48, 64)}
    found = [cell for cell in cells(MANY_PAIRS, choice(), with_and_without) if cell.series == "snmalloc"]
    time = at(found, effect.TIME, "msgpass-24")
    assert time.ours == pytest.approx(0.8) and time.paper == pytest.approx(0.95)


def test_producers_and_consumers_have_a_core_each():
    runs = FIGURE_5.runs(choice())
    assert {spec.allocator for spec in runs} == {"annex-by-slab", "annex-by-slab-unbatched"}
    machines = {spec.threads: spec.machine for spec in runs}
    assert machines == {threads: f"speedmalloc-{max(threads, 8) if threads == 6 else threads}" for threads in machines}
    assert set(machines) == {2, 4, 6, 8, 16, 32}


def taking(seconds: dict[str, float]) -> dict:
    """Three rounds of message passing under each allocator; the more threads, the longer."""
    return {
        (f"msgpass/{one.threads}", name): [(took * one.threads * round_, 1000 * took) for round_ in (1, 2, 4)]
        for one in MESSAGES.values()
        for name, took in seconds.items()
    }


STRATEGIES = ("snmalloc", "snmalloc-unbatched", "annex", "annex-unbatched", "annex-by-slab", "annex-by-slab-unbatched")


def test_message_passing_is_measured_here_too():
    one, two, bases = ((figure.measurements(choice())) for figure in (FIGURE_4, FIGURE_5, OVER_THE_BETTER))
    assert one == two == bases and one[0].allocators == STRATEGIES  # one run for all
    assert "--threads 2,4,6,8,16,32 --workloads msgpass" in " ".join(one[0].arguments)
    here = taking(dict(zip(STRATEGIES, (1, 2, 3, 4, 5, 2.5), strict=True)))
    panel, rows = "CPU time, measured with 2 CPUs", set(MESSAGES)
    for figure, ratios in ((FIGURE_4, {"snmalloc": 0.5, "annex": 0.75}), (FIGURE_5, {"annex-by-slab": 2})):
        found = [cell for cell in cells(figure, choice(), with_and_without, here) if cell.panel == panel]
        assert {(cell.series, cell.ours) for cell in found} == set(ratios.items())
        assert {cell.row for cell in found} == rows and all(cell.seeds_high == cell.ours for cell in found)


def test_annex_is_held_against_the_better_of_its_bases():
    def made_up(spec: Spec) -> dict:
        by_slab_is_better = spec.threads > 4
        slow, fast = (100, 90) if by_slab_is_better else (90, 100)
        return {"cycles": {"annex": 72, "annex-unbatched": slow, "annex-by-slab-unbatched": fast}[spec.allocator]}

    here = taking(dict(zip(STRATEGIES, (1, 1, 3, 4, 5, 2.5), strict=True)))
    found = cells(OVER_THE_BETTER, choice(), made_up, here)
    assert [cell.ours for cell in found if cell.panel == effect.TIME] == [pytest.approx(0.8)] * len(MESSAGES)
    assert at(found, "peak memory, measured with 2 CPUs", "msgpass-1").ours == pytest.approx(3 / 2.5)
    alone = choice(allocators=("annex",))
    assert (
        OVER_THE_BETTER.runs(alone)
        == OVER_THE_BETTER.measurements(alone)
        == []
        == cells(OVER_THE_BETTER, alone, made_up)
    )


def test_programs_of_one_thread_have_no_locked_instructions_to_compare():
    asked = choice(workloads=("cfrac", "alloc-test"), allocators=("snmalloc",))
    found = cells(FIGURE_2, asked, with_and_without)
    rows = {panel: {cell.row for cell in found if cell.panel == panel} for panel in effect.PANELS}
    assert rows[effect.TIME] == {"alloc-test1", "alloc-testN", "cfrac", MEAN}
    assert rows["locked instructions in the allocator"] == {"alloc-testN", MEAN}
    assert at(found, effect.TIME, "alloc-testN").paper == pytest.approx(1.016)
    assert at(found, effect.TIME, "cfrac").paper is None
    assert all(cell.ours is not None for cell in found)


def test_only_allocators_that_are_asked_for():
    by_slab = choice(allocators=("annex-by-slab",))
    assert FIGURE_4.runs(by_slab) == [] == cells(FIGURE_4, by_slab, dict)
    by_heap = choice(allocators=("annex",))
    assert {spec.allocator for spec in FIGURE_4.runs(by_heap)} == {"annex", "annex-unbatched"}


def test_each_benchmark_has_a_scale():
    assert {one.workload for one in ALL.values()} == set(SCALES)


# --- real ones ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def channels():
    """Annex with each of its ways to other heaps (src/remote/channel.h)."""
    if (paths.RELEASE / "build.ninja").exists():
        names = ("annex-unbatched", "annex-by-slab", "annex-by-slab-unbatched")
        targets = [f"{name}-shared" for name in names]
        subprocess.run(["cmake", "--build", "--preset", "release", "--target", *targets], cwd=paths.ROOT, check=True)


def allocators_part(tmp_path, name: str, batches: int) -> dict:
    """Of a run of msgpass with two consumers and two producers that send so many batches each."""
    try:
        allocators.find(name)
    except allocators.Unavailable as why:
        pytest.skip(str(why))
    program = native.workloads() / "msgpass"
    done, results = Simulator(tmp_path)(
        *("--allocator", name, "--threads", 4, "--", program, "--threads", "{threads}", "--batches", batches)
    )
    assert done.returncode == 0, done.stderr
    return results["all"]["allocator"]


@simulator.needed
# With a queue for each heap, those blocks need an instruction of their own that the sender sorts (src/remote/inbox.h);
# it does once 256 messages wait, so a run of a sixth of the length has 0.25 of them and this one 0.70.
@pytest.mark.parametrize(("name", "batches", "least"), [("annex", 12000, 0.5), ("annex-by-slab", 2000, 0.9)])
def test_annex_without_batches_sends_each_block_by_itself(tmp_path, channels, name, batches, least):
    batched, unbatched = (allocators_part(tmp_path, one, batches) for one in (name, f"{name}-unbatched"))
    freed_by_others = 2 * batches * 8.5  # two producers' batches of 1 to 16 messages
    assert unbatched["atomics"] > least * freed_by_others
    assert batched["atomics"] < unbatched["atomics"] / 4


@simulator.needed
def test_snmalloc_without_batches_takes_in_each_block_by_itself(tmp_path):
    """Its queue between threads has as many locked instructions either way: what is saved is its owner's work."""
    batched, unbatched = (allocators_part(tmp_path, name, 2000) for name in ("snmalloc", "snmalloc-unbatched"))
    assert unbatched["instructions"] > 1.05 * batched["instructions"]
    assert 0.8 < unbatched["atomics"] / batched["atomics"] < 1.25
