"""What an interrupted run has measured is not measured again."""

import json

import pytest

from annex_lab import bench, sample
from annex_lab.allocators import Allocator
from annex_lab.bench import Bench, Listener, Plan
from annex_lab.journal import Journal
from annex_lab.sample import RunFailed

TWO = [Allocator("glibc", None, "x"), Allocator("other", None, "x")]


class Counted(Listener):
    def __init__(self):
        self.runs = 0

    def done(self, program, runs=1):
        self.runs += runs


@pytest.fixture
def plan(program):
    programs = [program("/bin/true", name=name) for name in ("first", "second", "third")]
    return Plan(programs, TWO, rounds=3, retries=0, patience_s=0)


@pytest.fixture
def runs(monkeypatch):
    """Counts runs; limit[0] of them end by Ctrl-C."""
    real, names, limit = sample.run, [], [1000]

    def run(program, *arguments, **more):
        if len(names) >= limit[0]:
            raise KeyboardInterrupt
        names.append(program.name)
        return real(program, *arguments, **more)

    monkeypatch.setattr(bench.sample, "run", run)
    return names, limit


def test_a_run_goes_on_where_it_was_interrupted(plan, context, tmp_path, runs):
    names, limit = runs
    journal = Journal(tmp_path, {"plan": 1})
    limit[0] = 9 + 6 + 6 + 2  # the warm-ups, two rounds, and of the third round the first program
    outcome = Bench(plan, context, Listener(), journal).run()
    assert outcome.interrupted and len(outcome.results) == 14 and journal.exists()

    names.clear()
    limit[0] = 1000
    log = Counted()
    outcome = Bench(plan, context, log, journal, resume=True).run()
    assert not outcome.interrupted and not journal.exists()
    assert names == ["second"] * 3 + ["third"] * 3 + ["second"] * 2 + ["third"] * 2
    taken = sorted((r.workload, r.allocator, r.round) for r in outcome.results)
    assert taken == sorted((p, a.name, r) for p in ("first", "second", "third") for a in TWO for r in range(3))
    assert log.runs == 3 * plan.runs_each and set(outcome.glibc_peak_kib) == {"first", "second", "third"}


def test_without_resume_it_starts_again(plan, context, tmp_path, runs):
    names, limit = runs
    journal = Journal(tmp_path, {})
    limit[0] = 12
    Bench(plan, context, Listener(), journal).run()
    limit[0], before = 1000, len(names)
    assert len(Bench(plan, context, Listener(), journal).run().results) == 18
    assert len(names) - before == 27


def test_a_failure_is_remembered(plan, context, tmp_path, monkeypatch):
    real, count = sample.run, []

    def run(program, *arguments, **more):
        count.append(program.name)
        if program.name == "second" and count.count("second") == 3:
            raise RunFailed("the third time it fails")  # the warm-up under the other allocator
        if program.name == "third":
            raise KeyboardInterrupt
        return real(program, *arguments, **more)

    monkeypatch.setattr(bench.sample, "run", run)
    journal = Journal(tmp_path, {})
    Bench(plan, context, Listener(), journal).run()
    monkeypatch.setattr(bench.sample, "run", real)
    outcome = Bench(plan, context, Listener(), journal, resume=True).run()
    assert outcome.failures == [{"workload": "second", "allocator": "other", "why": "the third time it fails"}]
    assert {r.allocator for r in outcome.results if r.workload == "second"} == {"glibc"}


def test_a_line_that_was_cut_off_is_dropped(plan, context, tmp_path, runs):
    _names, limit = runs
    journal = Journal(tmp_path, {})
    limit[0] = 9 + 4
    Bench(plan, context, Listener(), journal).run()
    text = journal.path.read_text()
    journal.path.write_text(text[:-20])
    assert len(journal.outcome().results) == 3
    journal.note("skipped", {"workload": "x", "why": "y"})
    assert [json.loads(line) for line in journal.path.read_text().splitlines()][-1] == {
        "skipped": {"workload": "x", "why": "y"}
    }


def test_another_plan_is_another_journal(tmp_path):
    assert Journal(tmp_path, {"rounds": 3}).path != Journal(tmp_path, {"rounds": 5}).path
