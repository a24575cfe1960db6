"""bench --until: whole rounds go on until the intervals are narrow enough, or a bound is reached."""

import dataclasses
import io
import json

import jsonschema
import numpy as np
import pytest
from conftest import document_of
from rich.console import Console
from typer.testing import CliRunner

from annex_lab import bench, cli, document, intervals, sample, show, until
from annex_lab.allocators import Allocator
from annex_lab.bench import Bench, Listener, Plan
from annex_lab.intervals import Mean
from annex_lab.journal import Journal
from annex_lab.outcome import Outcome, Result
from annex_lab.report import Report
from annex_lab.sample import RunFailed, Sample
from annex_lab.until import Until

TWO = [Allocator("glibc", None, "x"), Allocator("other", None, "x")]
EVERYTHING = [(name, allocator.name) for name in ("x", "y") for allocator in TWO]


class Work(Listener):
    """What is ahead, as the progress bar counts it."""

    def __init__(self, plan: Plan):
        self.ledger = show.Ledger([program.name for program in plan.programs], plan.runs_each)
        self.said = []

    def done(self, program, runs=1):
        self.ledger.done(program, runs)
        assert self.ledger.runs_left[program] >= 0

    def more(self, program, runs):
        self.ledger.more(program, runs)

    def say(self, text):
        self.said.append(text)


class Widths:
    """The intervals' half-widths, as one round follows the other; the last for good."""

    def __init__(self, *widths):
        self.left, self.seen = list(widths), []

    def __call__(self, outcome: Outcome):
        self.seen.append(len(outcome.results))
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]


@pytest.fixture
def runs(monkeypatch):
    """No program really runs; what would run, and `runs.ends`: what is raised instead of a run, by its number."""

    class Runs(list):
        ends: dict[int, BaseException] = {}  # noqa: RUF012

    made = Runs()

    def run(program, *_arguments, **_more):
        made.append(program.name)
        if len(made) in made.ends:
            raise made.ends[len(made)]
        return Sample(0.1, 0.1, 0.0, 1000, 1)

    class NoToucher:
        def touch(self, mib):
            pass

    monkeypatch.setattr(sample, "run", run)
    monkeypatch.setattr(sample, "Toucher", NoToucher)
    monkeypatch.setattr(bench.quiet, "wait_until_quiet", lambda patience_s: True)
    return made


@pytest.fixture
def plan(program, runs):
    programs = [program("/bin/true", name=name) for name in ("x", "y")]
    return Plan(programs, TWO, rounds=3, retries=0, patience_s=0, until=Until(0.02, 6))


@pytest.fixture
def go(context, tmp_path):
    """Runs a plan; returns what came of it, and what was told meanwhile."""

    def do(plan, widths, resume=False):
        work = Work(plan)
        outcome = Bench(plan, context, work, Journal(tmp_path / "journals", {}), resume, widths).run()
        return outcome, work

    return do


def rounds_of(outcome: Outcome) -> dict[tuple[str, str], list[int]]:
    found: dict[tuple[str, str], list[int]] = {}
    for one in outcome.results:
        found.setdefault((one.workload, one.allocator), []).append(one.round)
    return found


def test_whole_rounds_go_on_until_the_widest_interval_is_narrow_enough(plan, go):
    widths = Widths(0.05, 0.03, 0.02)
    outcome, work = go(plan, widths)
    assert rounds_of(outcome) == {pair: [0, 1, 2, 3, 4] for pair in EVERYTHING}
    assert widths.seen == [12, 16, 20]  # after whole rounds alone
    assert set(work.ledger.runs_left.values()) == {0}
    assert work.said[0] == "after 3 rounds the widest interval is ±5 %: one more" and len(work.said) == 2


def test_a_bound_ends_it(plan, go):
    outcome, work = go(plan, Widths(0.5))
    assert rounds_of(outcome) == {pair: list(range(6)) for pair in EVERYTHING}
    assert set(work.ledger.runs_left.values()) == {0}


@pytest.mark.parametrize("width", [0.01, None])
def test_no_round_more_where_none_is_needed_or_would_help(plan, go, width):
    outcome, work = go(plan, Widths(width))
    assert rounds_of(outcome) == {pair: [0, 1, 2] for pair in EVERYTHING}
    assert set(work.ledger.runs_left.values()) == {0} and work.said == []


def test_without_it_nothing_is_asked(plan, go):
    widths = Widths(0.5)
    outcome, work = go(dataclasses.replace(plan, until=None), widths)
    assert rounds_of(outcome) == {pair: [0, 1, 2] for pair in EVERYTHING}
    assert widths.seen == [] and set(work.ledger.runs_left.values()) == {0}


WARM_UPS = 2 * (1 + 2)


def test_an_interrupted_run_ends_the_round_that_it_had_begun_before_it_looks(plan, go, runs):
    plan = dataclasses.replace(plan, until=Until(0.02, 9))
    runs.ends = {WARM_UPS + 5 * 4 - 1: KeyboardInterrupt()}  # in the fifth round, after x
    outcome, _ = go(plan, Widths(0.5))
    assert outcome.interrupted and len(outcome.results) == 18

    runs.clear()
    runs.ends = {}
    widths = Widths(0.03, 0.01)
    outcome, work = go(plan, widths, resume=True)
    assert not outcome.interrupted and widths.seen == [20, 24]
    assert {pair: sorted(rounds) for pair, rounds in rounds_of(outcome).items()} == {
        pair: list(range(6)) for pair in EVERYTHING
    }
    assert runs[WARM_UPS:] == ["y"] * 2 + ["x"] * 2 + ["y"] * 2
    assert set(work.ledger.runs_left.values()) == {0}


def test_an_allocator_that_fails_in_a_round_more_is_dropped(plan, go, runs):
    runs.ends = {WARM_UPS + 3 * 4 + 1: RunFailed("no more")}
    outcome, work = go(plan, Widths(0.5, 0.5, 0.01))
    ((failed, rounds),) = [(pair, rounds) for pair, rounds in rounds_of(outcome).items() if len(rounds) == 3]
    assert failed[0] == "x" and rounds == [0, 1, 2] and len(outcome.results) == 3 + 3 * 5
    assert set(work.ledger.runs_left.values()) == {0}


def test_a_program_that_fails_under_glibc_ends_with_nothing_ahead(plan, go, runs):
    runs.ends = {1: RunFailed("never")}
    _, work = go(plan, Widths(0.01))
    assert set(work.ledger.runs_left.values()) == {0}


@pytest.mark.parametrize(
    ("end", "lines"), [(None, ["x", "y"]), (Until(0.02, 6), ["after 3 rounds", "after 4 rounds", "x", "y"])]
)
def test_a_log_says_once_that_a_program_is_done(plan, context, tmp_path, end, lines):
    plan = dataclasses.replace(plan, until=end)
    text = io.StringIO()
    with show.listener(Console(file=text), ["x", "y"], plan.runs_each) as listener:
        Bench(plan, context, listener, Journal(tmp_path, {}), False, Widths(0.05, 0.03, 0.02)).run()
    heads = [line.partition(":")[0].partition(" the")[0] for line in text.getvalue().splitlines()]
    assert heads == lines


def test_a_bar_gets_longer():
    console = Console(file=io.StringIO(), force_terminal=True)
    with show.listener(console, ["x"], 2) as bar:
        bar.done("x", 1)
        bar.more("x", 2)
        (task,) = bar.progress.tasks
        assert (task.completed, task.total) == (show.UNKNOWN_S, 4 * show.UNKNOWN_S)


@pytest.mark.parametrize(
    ("half_width", "at_most_rounds", "rounds", "why"),
    [
        (0.0, None, 5, "between 0 and 1"),
        (1.0, None, 5, "between 0 and 1"),
        (-0.02, None, 5, "not -0.02"),
        (float("nan"), None, 5, "not nan"),
        (0.02, None, 2, "--until needs --rounds 3 or more"),
        (0.02, 4, 5, "--at-most-rounds 4 is less than --rounds 5"),
        (0.02, None, 60, "--at-most-rounds 50 is less than --rounds 60"),
        (None, 20, 5, "--at-most-rounds is for --until"),
    ],
)
def test_what_makes_no_sense(half_width, at_most_rounds, rounds, why):
    with pytest.raises(until.Wrong, match=why):
        until.of_options(half_width, at_most_rounds, rounds)


def test_options():
    assert until.of_options(None, None, 5) is None
    assert until.of_options(0.02, None, 3) == Until(0.02, 50)
    assert until.of_options(0.05, 7, 7) == Until(0.05, 7)


@pytest.mark.parametrize(
    "wrong",
    [
        ["--until", "0"],
        ["--until", "2"],
        ["--until", "0.02", "--rounds", "2"],
        ["--until", "0.02", "--at-most-rounds", "3"],
        ["--at-most-rounds", "30"],
        ["--until", "0.02", "--allocators", "glibc"],
    ],
)
def test_wrong_usage_is_one_line(wrong):
    result = CliRunner().invoke(cli.app, ["bench", "--workloads", "ls", *wrong])
    assert result.exit_code == 2 and result.output.startswith("--") and result.output.count("\n") == 1


# -- what is said at the end

NOISE = (0.98, 1.0, 1.02)


def measured(noise, **options) -> dict:
    figures = {(name, "glibc"): [(1.0, 1000)] * len(noise) for name in ("x", "y")}
    figures |= {(name, "annex"): [(one, 1000) for one in noise] for name in ("x", "y")}
    made = document_of(figures)
    return {**made, "options": {**made["options"], "rounds": min(3, len(noise)), **options}}


def shown(content: dict) -> list[str]:
    text = io.StringIO()
    show.tables(Console(file=text, width=40), Report(content))
    return text.getvalue().splitlines()


def test_the_widest_interval_is_of_what_the_tables_show():
    content = measured(NOISE)
    widest = Report(content).widest("cpu_s", "score")
    assert (widest.allocator, widest.against) == ("annex", "glibc")
    assert widest.half_width == pytest.approx((widest.high / widest.low) ** 0.5 - 1)
    for one in content["geomeans"]:
        one.update(low=None, high=None)
    assert Report(content).widest("cpu_s") is None


def test_intervals_that_more_rounds_would_narrow_are_said():
    (hint,) = [line for line in shown(measured(NOISE)) if "--until" in line]
    assert hint == shown(measured(NOISE))[-1]
    width = Report(measured(NOISE)).widest("cpu_s", "score").half_width
    assert width > 0.02 and f"±{100 * width:.3g} % (annex / glibc, all, " in hint


@pytest.mark.parametrize("noise", [(0.999, 1.0, 1.001), (0.9, 1.1)])
def test_narrow_intervals_and_none_at_all_are_not_said(noise):
    assert not any("--until" in line for line in shown(measured(noise)))


def test_the_end_says_how_wide_it_is_and_whether_it_got_there():
    width = f"±{100 * Report(measured(NOISE)).widest('cpu_s').half_width:.3g} % (annex / glibc, all, CPU time)"
    said = f"After 3 rounds the widest interval of a group is {width}: "
    wide = {"until": 0.02, "at_most_rounds": 3}
    assert shown(measured(NOISE, until=0.5, at_most_rounds=9))[-1] == f"{said}within the 50 % of --until."
    ended = f"{said}--at-most-rounds 3 ended it before it came to the 2 % of --until."
    assert shown(measured(NOISE, **wide))[-1] == ended
    interrupted = {**measured(NOISE, **wide), "interrupted": True}
    assert shown(interrupted)[-1] == f"{said}interrupted before it came to the 2 % of --until."
    assert shown(measured((0.9, 1.1), **wide))[-1] == "--until: no geometric mean of CPU time has an interval."


def test_a_report_has_the_rounds_that_were_measured():
    content = measured((0.98, 1.0, 1.02, 1.01), until=0.02, at_most_rounds=4)
    assert content["options"]["rounds"] == 3
    assert ", 4 rounds, " in Report(content).as_markdown()


def test_joined_runs_have_no_end_in_common():
    one, other = measured(NOISE, until=0.02, at_most_rounds=9), document_of({("z", "glibc"): [(1.0, 1)]})
    other = {**other, "allocators": one["allocators"]}
    assert document.merged({"a": one, "b": other})["options"].keys() & {"until", "at_most_rounds"} == set()


# -- what stopping where the noise looks small does to the intervals


@pytest.mark.parametrize(("programs", "least", "held"), [(1, 3, 0.91), (1, 5, 0.93), (7, 5, 0.95)])
def test_how_often_the_interval_holds_the_truth_where_a_run_stops(programs, least, held):
    """docs/benchmarking.md has these: a round's noise of 3 % in the geometric mean, known within 2 % at the end."""
    runs, aim = 6000, 0.02
    noise = np.random.default_rng(1).normal(0, 0.03 * programs**0.5, (50, runs, programs))
    holds, going = 0, np.ones(runs, bool)
    for rounds in range(least, 51):
        low, high = intervals.mean_of([Mean.of(noise[:rounds, :, number]) for number in range(programs)]).bounds()
        narrow = going & ((np.exp((high - low) / 2) - 1 <= aim) | (rounds == 50))
        holds += np.count_nonzero(narrow & (low <= 0) & (high >= 0))
        going &= ~narrow
    assert holds / runs == pytest.approx(held, abs=0.01)


# -- the command


class Made(Bench):
    """Does no run, but asks how wide the intervals are after three rounds."""

    width: float | None = None

    def run(self):
        noise = {"glibc": (1.0, 1.0, 1.0), "annex": NOISE}
        for allocator in self.plan.allocators:
            for number, seconds in enumerate(noise[allocator.name]):
                taken = Sample(seconds, seconds, 0.0, 1000, 1)
                self.outcome.results.append(Result("ls", allocator.name, number, 1, taken, 0.0, False, 1))
        self.outcome.glibc_peak_kib["ls"] = 1000
        Made.width = self.half_width(self.outcome)
        self.context.scratch.parent.mkdir(exist_ok=True)
        self.journal.remove()
        return self.outcome


def test_the_command_looks_at_what_the_report_will_show_and_records_its_options(tmp_path, monkeypatch):
    monkeypatch.setattr(cli, "Bench", Made)
    monkeypatch.setattr(document.known, "page_policy", lambda allocator: "none")
    monkeypatch.setattr(
        cli, "_find", lambda names, strict: ([Allocator("annex", None, "1"), Allocator("glibc", None, "2")], [])
    )
    json_file = tmp_path / "r.json"
    given = ["bench", "--workloads", "ls", "--allocators", "annex,glibc", "--rounds", "3", "--until", "0.9"]
    result = CliRunner().invoke(cli.app, [*given, "--json", str(json_file)])
    assert result.exit_code == 0, result.output
    content = json.loads(json_file.read_text())
    jsonschema.validate(content, json.loads(document.SCHEMA.read_text()))
    assert content["options"]["until"] == 0.9 and content["options"]["at_most_rounds"] == 50
    assert Made.width == pytest.approx(Report(content).widest("cpu_s").half_width)
    assert "within the 90 % of --until" in result.output


def test_another_end_is_another_run(plan, context):
    journals = {
        cli._journal(dataclasses.replace(plan, until=end), context).path
        for end in (None, Until(0.02, 50), Until(0.03, 50), Until(0.02, 60))
    }
    assert len(journals) == 4
