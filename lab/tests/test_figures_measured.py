"""Figures that are measured on this machine: Exgen-Malloc's claims from samples made up here, and a small real one."""

import csv
import functools
import signal
import subprocess
import sys
import time

import pytest
from conftest import document_of

from annex_lab import document
from annex_lab.sim.figures import host, runner
from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.exgen import claims
from annex_lab.sim.figures.figure import Choice
from annex_lab.sim.figures.host import Measurement
from annex_lab.sim.figures.values import MEAN, Results

PROGRAMS = ("cfrac", "espresso", "larson")
ALLOCATORS = ("annex-solo", "dlmalloc", "mimalloc3")


def choice(**more) -> Choice:
    asked = {"allocators": ALLOCATORS, "workloads": PROGRAMS, "rounds": 3}
    return Choice(claims.SCALES, **{**asked, **more})


def cells(taken: dict, asked: Choice, **more) -> list[Cell]:
    """taken: (program, allocator) -> (CPU seconds, peak KiB) of each round."""
    (measurement,) = claims.MIMALLOC_BENCH.measurements(asked)
    made = document_of(taken)
    for row in made["results"]:
        row.update(more)
    return claims.MIMALLOC_BENCH.cells(asked, Results({measurement: host.results(made)}, {}))


def at(found: list[Cell], panel: str, row: str, series: str) -> Cell:
    (one,) = [cell for cell in found if (cell.panel, cell.row, cell.series) == (panel, row, series)]
    return one


def samples(ours: dict[str, list], dlmalloc: list, mimalloc: list) -> dict:
    made = {}
    for program in PROGRAMS:
        made |= {
            (program, "annex-solo"): ours[program],
            (program, "dlmalloc"): dlmalloc,
            (program, "mimalloc3"): mimalloc,
        }
    return made


def test_speed_is_a_ratio_of_medians_with_the_rounds_beside_it():
    ours = {"cfrac": [(1, 100), (2, 100), (9, 100)], "espresso": [(4, 80)] * 3, "larson": [(2, 50)] * 3}
    found = cells(samples(ours, [(4, 200)] * 3, [(2, 100)] * 3), choice())
    cfrac = at(found, claims.SPEED, "cfrac", "dlmalloc")
    assert cfrac.ours == 2 and (cfrac.seeds_low, cfrac.seeds_high) == (pytest.approx(4 / 9), 4)
    mean = at(found, claims.SPEED, MEAN, "dlmalloc")
    assert mean.ours == pytest.approx((2 * 1 * 2) ** (1 / 3)) and mean.paper == 1.93 and mean.paper_from == "abstract"
    alone = at(found, claims.SPEED, claims.MEAN_ALONE, "dlmalloc")  # larson starts a thread
    assert alone.ours == pytest.approx(2**0.5) and alone.paper is None
    assert at(found, claims.SPEED, MEAN, "mimalloc3").paper is None
    memory = at(found, claims.MEMORY, MEAN, "mimalloc3")
    assert memory.ours == pytest.approx((1 * 0.8 * 0.5) ** (1 / 3)) and memory.paper == pytest.approx(0.748)
    assert at(found, claims.MEMORY, MEAN, "dlmalloc").paper is None


def test_what_failed_or_was_disturbed_is_said():
    ours = {"cfrac": [(1, 100)] * 3, "espresso": [(1, 100)] * 3, "larson": [(1, 100)] * 3}
    taken = samples(ours, [(2, 100)] * 3, [(1, 100)] * 3)
    del taken["cfrac", "dlmalloc"]
    found = cells(taken, choice(), disturbed=True)
    lost = at(found, claims.SPEED, "cfrac", "dlmalloc")
    assert lost.ours is None and lost.note == "cfrac has no sample under dlmalloc"
    mean = at(found, claims.SPEED, MEAN, "dlmalloc")
    assert mean.ours == 2 and mean.note == "of 2 of 3; 24 of 24 samples disturbed by other processes"
    nothing = claims.MIMALLOC_BENCH.cells(choice(), Results({}, {}))
    assert nothing and all(cell.ours is None and cell.note for cell in nothing)


def test_nothing_is_measured_without_two_to_compare():
    assert claims.MIMALLOC_BENCH.measurements(choice(allocators=("dlmalloc", "mimalloc3"))) == []
    assert claims.MIMALLOC_BENCH.measurements(choice(allocators=("annex-solo",))) == []


ONE = Measurement(("glibc-simple",), ("annex-solo", "glibc"), 1, 0.001)


def test_a_result_is_named_after_all_that_it_depends_on():
    others = [
        Measurement(("cfrac",), ONE.allocators, 1, 0.001),
        Measurement(ONE.workloads, ("annex-solo", "dlmalloc"), 1, 0.001),
        Measurement(ONE.workloads, ONE.allocators, 2, 0.001),
        Measurement(ONE.workloads, ONE.allocators, 1, 0.002),
        Measurement(ONE.workloads, ONE.allocators, 1, 0.001, (2,)),
    ]
    assert len({one.part for one in (ONE, *others)}) == 6


def test_a_result_counts_until_an_allocator_is_newer(tmp_path, monkeypatch):
    written = {"annex-solo": 0.0, "glibc": 0.0}
    monkeypatch.setattr(host, "library_written", written.__getitem__)
    assert ONE.find(tmp_path).left and ONE.find(tmp_path).why == "not measured"
    file = tmp_path / ONE.part
    file.parent.mkdir()
    file.write_text("{}")
    assert ONE.find(tmp_path).left and "not a result file" in ONE.find(tmp_path).why
    document.save(document_of({("glibc-simple", "glibc"): [(1, 1)]}), file)
    assert ONE.find(tmp_path).part and not ONE.find(tmp_path).left
    written["annex-solo"] = time.time() + 100
    assert ONE.find(tmp_path).left and "before an allocator" in ONE.find(tmp_path).why


START = subprocess.Popen


def _bench(monkeypatch, script: str) -> None:
    """In place of annex-lab bench: a script that is given the file to write."""
    monkeypatch.setattr(
        host.subprocess, "Popen", lambda command, **more: START([command[0], "-c", script, command[-1]], **more)
    )


def test_what_ended_early_leaves_nothing_that_counts(tmp_path, monkeypatch):
    _bench(monkeypatch, "import sys; open(sys.argv[1], 'w').write('{}'); sys.exit(130)")
    with pytest.raises(runner.Stopped):
        ONE.measure(tmp_path)
    assert not list(tmp_path.rglob("*.json")) and not list(tmp_path.rglob("*.unfinished"))
    _bench(monkeypatch, "import sys; sys.exit(2)")
    with pytest.raises(host.Failed, match="status 2"):
        ONE.measure(tmp_path)
    _bench(monkeypatch, "import sys; open(sys.argv[1], 'w').write('{}'); sys.exit(1)")  # a program failed
    ONE.measure(tmp_path)
    assert (tmp_path / ONE.part).read_text() == "{}"


COMMAND = ["exgen", "--workloads", "glibc-simple,cfrac", "--allocators", "annex-solo,glibc", "--scale-factor", "0.02"]


def test_a_small_one_goes_on_after_ctrl_c(tmp_path):
    command = [sys.executable, "-m", "annex_lab.cli", "figures", *COMMAND, "--rounds", "2", "--out", str(tmp_path)]
    heed = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    first = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed)
    until = time.monotonic() + 60
    while not list(tmp_path.rglob("*.log")) and time.monotonic() < until:
        time.sleep(0.1)
    time.sleep(1)
    first.send_signal(signal.SIGINT)
    _, said = first.communicate(timeout=60)
    assert first.returncode == 130 and "goes on from here" in said, said
    assert not list(tmp_path.rglob("*.json")) and not (tmp_path / "mimalloc-bench.md").exists()

    second = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert second.returncode == 0, second.stderr
    rows = list(csv.DictReader((tmp_path / "mimalloc-bench.csv").open()))
    speeds = [
        float(row["ours"]) for row in rows if row["panel"] == claims.SPEED and row["row"] in COMMAND[2].split(",")
    ]
    assert len(speeds) == 2 and all(0.2 < speed < 5 for speed in speeds)
    assert (tmp_path / "figures.md").read_text().count("missing: ") == 2  # SPEC's and redis's
