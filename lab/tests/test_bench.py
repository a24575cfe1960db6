"""The schedule: turns, repeats, what is dropped and what is kept."""

import dataclasses
import os
from pathlib import Path

import pytest

from annex_lab import bench, proof, sample
from annex_lab.allocators import Allocator
from annex_lab.bench import Attempt, Bench, Listener, Plan, least_disturbed, turns
from annex_lab.journal import Journal
from annex_lab.programs.model import whole_output
from annex_lab.sample import Sample

LIBM = Path("/lib/x86_64-linux-gnu/libm.so.6")  # a library that is no allocator
GLIBC = Allocator("glibc", None, "x")


class Log(Listener):
    def __init__(self):
        self.said, self.runs = [], 0

    def say(self, text):
        self.said.append(text)

    def done(self, program, runs=1):
        self.runs += runs


def plan(programs, allocators, rounds=2):
    return Plan(programs, allocators, rounds, retries=0, patience_s=0)


@pytest.fixture
def run(context, tmp_path):
    """Runs a plan to its end."""

    def go(plan, log=None):
        return Bench(plan, context, log or Log(), Journal(tmp_path / "journals", {})).run()

    return go


def attempt(foreign_s, span_s=1.0):
    return Attempt(Sample(span_s, span_s, 0, 1000, 1), foreign_s, span_s)


def test_everybody_has_every_turn_equally_often():
    names = ["a", "b", "c"]
    orders = [turns(names, round_) for round_ in range(3)]
    assert orders == [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]]
    for place in range(3):
        assert {order[place] for order in orders} == set(names)


def test_a_disturbed_sample_is_repeated_until_a_quiet_one():
    given = iter([attempt(0.5), attempt(0.2), attempt(0.0), attempt(0.0)])
    best, tries = least_disturbed(lambda: next(given), retries=5)
    assert (best.foreign_s, best.disturbed, tries) == (0.0, False, 3)


def test_repeats_are_bounded_and_the_least_disturbed_counts():
    given = iter([attempt(0.5), attempt(0.2), attempt(0.4)])
    best, tries = least_disturbed(lambda: next(given), retries=2)
    assert (best.foreign_s, best.disturbed, tries) == (0.2, True, 3)


def test_a_run_gives_interleaved_results(program, run):
    log = Log()
    other = Allocator("other", None, "x")
    outcome = run(plan([program("/bin/true")], [GLIBC, other]), log)
    assert [(r.allocator, r.round) for r in outcome.results] == [("glibc", 0), ("other", 0), ("other", 1), ("glibc", 1)]
    assert outcome.failures == [] and outcome.glibc_peak_kib["quick"] > 0
    assert log.runs == 1 + 2 * (1 + 2)


def test_output_that_differs_is_a_failure_and_is_not_measured(program, run):
    log = Log()
    shows_library = program("/bin/sh", "-c", 'echo "$LD_PRELOAD"')
    outcome = run(plan([shows_library], [GLIBC, Allocator("odd", LIBM, "x")]), log)
    assert {r.allocator for r in outcome.results} == {"glibc"}
    assert outcome.failures == [
        {"workload": "quick", "allocator": "odd", "why": "its output differs from that under glibc"}
    ]
    assert log.said and log.runs == 1 + 2 * (1 + 2)


def test_a_library_that_does_not_serve_malloc_is_a_failure(program, run):
    outcome = run(plan([program("/bin/ls", "/")], [Allocator("idle", LIBM, "x")]), Log())
    assert outcome.results == []
    assert "malloc is served by libc.so.6" in outcome.failures[0]["why"]


def test_a_program_that_fails_under_glibc_is_left_out(program, run):
    log = Log()
    outcome = run(plan([program("/bin/false"), program("/bin/true", name="good")], [GLIBC]), log)
    assert {r.workload for r in outcome.results} == {"good"}
    assert outcome.failures[0]["workload"] == "quick" and log.runs == 2 * (1 + 1 + 2)


def test_a_program_that_is_not_installed_is_said(program, run):
    log = Log()
    missing = program("/bin/true", needs=("no-such-program-here",))
    outcome = run(plan([missing], [GLIBC]), log)
    assert outcome.skipped[0]["workload"] == "quick" and "no-such-program-here" in log.said[0]


def test_an_interruption_keeps_what_is_done(program, run, monkeypatch):
    real, count = sample.run, []

    def interrupted(*arguments, **more):
        count.append(1)
        if len(count) > 4:
            raise KeyboardInterrupt
        return real(*arguments, **more)

    monkeypatch.setattr(bench.sample, "run", interrupted)
    outcome = run(plan([program("/bin/true")], [GLIBC], rounds=10), Log())
    assert outcome.interrupted and len(outcome.results) == 2


def test_libraries_are_copied_aside(tmp_path, monkeypatch):
    monkeypatch.setattr(bench.paths, "BENCH", tmp_path / "bench")
    library = tmp_path / "libx.so"
    library.write_text("first")
    with bench.private_copies([Allocator("x", library, "1"), GLIBC]) as (copy, glibc):
        library.write_text("second")
        assert copy.library.read_text() == "first" and copy.library.name == "x.so" and glibc.library is None
    assert not copy.library.exists()


def test_companions_are_copied_along(tmp_path, monkeypatch):
    monkeypatch.setattr(bench.paths, "BENCH", tmp_path / "bench")
    library, companion = tmp_path / "libx.so", tmp_path / "libcore.so.2"
    library.write_text("x")
    companion.write_text("core")
    with bench.private_copies([Allocator("x", library, "1", companions=(companion,))]) as (copy,):
        assert (copy.library.parent / "libcore.so.2").read_text() == "core"


def test_programs_are_bound_to_the_cpus_asked_for(program, context, run):
    first = min(os.sched_getaffinity(0))
    shows = program("/bin/sh", "-c", "grep Cpus_allowed_list /proc/self/status")
    bound = dataclasses.replace(context, cpus=(first,))
    output = sample.run(shows, bound, "").output
    assert output == whole_output(f"Cpus_allowed_list:\t{first}\n".encode())


BOUND = """
  1: binding file /bin/p [0] to /lib/libc.so.6 [0]: normal symbol `printf' [GLIBC_2.2.5]
  1: binding file /lib/libstdc++.so.6 [0] to /b/x.so [0]: normal symbol `malloc' [GLIBC_2.2.5]
  1: binding file /b/x.so [0] to /b/x.so [0]: normal symbol `free'
  1: binding file /lib64/ld-linux-x86-64.so.2 [0] to /lib/libc.so.6 [0]: normal symbol `malloc'
"""


def test_bindings_to_the_library_are_proof(tmp_path):
    (tmp_path / "bindings.1").write_text(BOUND)
    assert proof.complaint(tmp_path, "/elsewhere/x.so") is None
    assert "malloc is served by x.so" in proof.complaint(tmp_path, "/b/y.so")


def test_an_address_taken_in_the_program_is_no_stray(tmp_path):
    through_program = "1: binding file /lib/libz.so [0] to /bin/p [0]: normal symbol `free'\n"
    (tmp_path / "bindings.1").write_text(through_program)
    assert "free is served by p" in proof.complaint(tmp_path, "/b/x.so")
    (tmp_path / "bindings.1").write_text(
        through_program + "1: binding file /bin/p [0] to /b/x.so [0]: normal symbol `free'\n"
    )
    assert proof.complaint(tmp_path, "/b/x.so") is None


@pytest.mark.parametrize("text", ["", "1: binding file /bin/p [0] to /lib/libc.so.6 [0]: normal symbol `printf'\n"])
def test_no_binding_is_no_proof(tmp_path, text):
    assert proof.complaint(tmp_path, "/b/x.so")
    (tmp_path / "bindings.1").write_text(text)
    assert proof.complaint(tmp_path, "/b/x.so")
