"""The schedule: turns, repeats, what is dropped and what is kept."""

import dataclasses
import os
from pathlib import Path

import pytest

from annex_lab import bench, proof, sample
from annex_lab.allocators import Allocator
from annex_lab.bench import Attempt, Bench, Listener, Plan, best_of, turns
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


def test_the_undisturbed_run_counts():
    taken = [attempt(0.3, 1.0), attempt(0.01, 0.1), attempt(0.2, 1.5)]
    assert best_of(taken).span_s == 0.1


def test_where_all_were_disturbed_the_least_disturbed_counts():
    assert best_of([attempt(0.5), attempt(0.2), attempt(0.4)]).foreign_s == 0.2


def test_disturbed_rounds_get_more_runs(program, context, run, monkeypatch):
    shares = iter([1.0, 1.0, 1.0, 0.0])

    def stop(watch):
        watch.wall = 1.0
        return next(shares)

    monkeypatch.setattr(bench.quiet.Watch, "stop", stop)
    monkeypatch.setattr(bench.quiet, "wait_until_quiet", lambda patience: True)
    one = dataclasses.replace(plan([program("/bin/true")], [GLIBC], rounds=1), retries=5)
    (result,) = run(one).results
    assert (result.tries, result.disturbed) == (4, False)


def test_rounds_go_through_all_programs(program, run):
    programs = [program("/bin/true", name=name) for name in ("x", "y")]
    outcome = run(plan(programs, [GLIBC]))
    assert [(r.workload, r.round) for r in outcome.results] == [("x", 0), ("y", 0), ("x", 1), ("y", 1)]


def test_solo_is_not_put_under_several_threads_unasked(program, run):
    both = [program("/bin/true", name="one"), program("/bin/true", name="several", suite="multi")]
    log = Log()
    allocators = [Allocator("annex-solo", None, "x"), GLIBC]
    outcome = run(dataclasses.replace(plan(both, allocators), fitting=True), log)
    assert {(r.workload, r.allocator) for r in outcome.results} == {
        ("one", "annex-solo"), ("one", "glibc"), ("several", "glibc")
    }  # fmt: skip
    assert log.runs == 2 * (1 + 2 * (1 + 2)) and outcome.failures == []


def test_an_allocator_that_fails_later_is_dropped_and_the_rest_goes_on(program, run, monkeypatch):
    real, count = sample.run, []

    def fails_later(program, context, preload, extra=None, has_support=False):
        count.append(1)
        if len(count) == 5:
            raise sample.RunFailed("no more")
        return real(program, context, preload, extra)

    monkeypatch.setattr(bench.sample, "run", fails_later)
    log = Log()
    outcome = run(plan([program("/bin/true")], [GLIBC, Allocator("b", None, "x")]), log)
    assert [f["allocator"] for f in outcome.failures] == ["b"]
    assert [(r.allocator, r.round) for r in outcome.results] == [("glibc", 0), ("glibc", 1)]
    assert log.runs == 1 + 2 * (1 + 2)


def test_a_run_gives_interleaved_results(program, run):
    log = Log()
    other = Allocator("other", None, "x")
    outcome = run(plan([program("/bin/true")], [GLIBC, other]), log)
    taken = [(r.allocator, r.round) for r in outcome.results]
    assert taken == [("glibc", 0), ("other", 0), ("glibc", 1), ("other", 1)]
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
