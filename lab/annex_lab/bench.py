"""The schedule: which program runs when under which allocator, so that the comparison is fair.

- Every program first runs once under glibc and once under each allocator, untimed: that fills the page cache, compares
  the output with glibc's, and proves that the allocator serves the program (see proof.py).
- Then come the rounds. Each goes through all programs, so that the rounds of one program are spread over the whole run,
  and a slow minute of the machine is one round of many programs, not all rounds of one.
- In a round of a program the allocators take turns (A B C, B C A, ...).
- Before each run the memory it will need is touched and released by another process (see native/toucher.c).
- A run during which other processes used CPU is disturbed, and is repeated.
- With --until, more rounds follow those that were planned, until the intervals are narrow enough (see until.py).
"""

import contextlib
import dataclasses
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from annex_lab import paths, proof, quiet, sample
from annex_lab.allocators import Allocator
from annex_lab.journal import Journal, result_line
from annex_lab.outcome import Outcome, Result
from annex_lab.programs.model import Context, Program, Server
from annex_lab.sample import RunFailed, Sample
from annex_lab.until import Until


@dataclass(frozen=True)
class Plan:
    programs: list[Program]
    allocators: list[Allocator]
    rounds: int = 5
    retries: int = 2  # more runs in place of one that was disturbed
    patience_s: float = 3.0  # how long to wait for a quiet machine before a round
    count: bool = False  # one run more of each under callgrind
    latency: bool = False  # and one that times every call
    fitting: bool = False  # solo on single-threaded programs alone
    until: Until | None = None  # rounds go on after those above

    @property
    def runs_each(self) -> int:
        """Runs of each program: the reference; then for each allocator a warm-up, the rounds, and what is optional."""
        return 1 + len(self.allocators) * self.runs_under_each + self.open_end

    @property
    def open_end(self) -> int:
        """One run stands for the rounds that nobody can count beforehand, until there are no more."""
        return int(self.until is not None)

    @property
    def runs_under_each(self) -> int:
        return 1 + self.rounds + self.count + self.latency


class Listener:
    """What the bench tells whoever watches; the command line shows a progress bar."""

    def expect(self, program: str, seconds: float) -> None:
        """What a run of the program takes, now that it is known."""

    def step(self, program: str, allocator: str, what: str) -> None:
        """A run begins."""

    def done(self, program: str, runs: int = 1) -> None:
        """So many runs of the program are behind us (or were dropped)."""

    def more(self, program: str, runs: int) -> None:
        """So many runs of the program come in addition."""

    def say(self, text: str) -> None:
        """Something a person should know."""


def turns(allocators: list[Allocator], round_: int) -> list[Allocator]:
    """The order of this round: everybody is first, second, ... equally often."""
    by = round_ % len(allocators)
    return allocators[by:] + allocators[:by]


@contextlib.contextmanager
def private_copies(allocators: list[Allocator]) -> Iterator[list[Allocator]]:
    """The libraries copied aside, so that a build going on meanwhile cannot change what is measured."""
    paths.BENCH.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="libraries-", dir=paths.BENCH))
    copies = []
    for allocator in allocators:
        library = allocator.library
        if library is not None:
            library = Path(shutil.copy(library, _place_for(allocator, folder)))
            for companion in allocator.companions:
                shutil.copy(companion, library.parent)
        copies.append(dataclasses.replace(allocator, library=library))
    try:
        yield copies
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _place_for(allocator: Allocator, folder: Path) -> Path:
    """The copy's path; a library with companions has a folder of its own, since it may find them by their names."""
    if allocator.companions:
        folder = folder / allocator.name
        folder.mkdir()
    return folder / f"{allocator.name}.so"


@dataclass
class Attempt:
    """A sample and what went on around it, from its start to its end (all its runs)."""

    sample: Sample
    foreign_s: float
    span_s: float

    @property
    def foreign_share(self) -> float:
        return self.foreign_s / max(self.span_s, 0.05)

    @property
    def disturbed(self) -> bool:
        return quiet.disturbed(self.foreign_s, self.span_s)


def best_of(attempts: list[Attempt]) -> Attempt:
    """The one that nobody disturbed; where there is none, the least disturbed."""
    return min(attempts, key=lambda one: (one.disturbed, one.foreign_share))


@dataclass
class Underway:
    """A program that is being measured, with the allocators under which it works."""

    program: Program
    well: list[Allocator]


def _without(allocators: list[Allocator], one: Allocator) -> list[Allocator]:
    return [allocator for allocator in allocators if allocator is not one]


class Bench:
    """Measures a plan; what a journal already has is not measured again."""

    def __init__(
        self,
        plan: Plan,
        context: Context,
        listener: Listener,
        journal: Journal,
        resume: bool = False,
        half_width: Callable[[Outcome], float | None] = lambda _outcome: None,
    ):
        """`half_width`: of the widest interval so far, for plan.until; None where there is none to wait for."""
        self.plan, self.context, self.listener, self.journal = plan, context, listener, journal
        self.half_width = half_width
        self.rounds = plan.rounds  # with plan.until, those to be measured as far as we know
        self.outcome = Outcome()
        if resume and journal.exists():
            self.outcome = journal.outcome()
        else:
            journal.start()
        self.toucher = sample.Toucher()
        self.patience = quiet.Patience(plan.patience_s, plan.retries)
        self.peak_kib = dict(self.outcome.glibc_peak_kib)  # the highest seen of each program, for the toucher

    def run(self) -> Outcome:
        """Measures everything; an interruption keeps what is done."""
        try:
            with private_copies(self.plan.allocators) as allocators:
                underway = [one for program in self.plan.programs if (one := self._begin(program, allocators))]
                for round_ in self._rounds(underway):
                    quiet.wait_until_quiet(self.patience.wait_s)
                    for one in underway:
                        self._round(one, round_)
                for one in underway:
                    self._optional(one)
        except KeyboardInterrupt:
            self.outcome.interrupted = True
        else:
            self.journal.remove()
        finally:
            shutil.rmtree(self.context.scratch, ignore_errors=True)
        return self.outcome

    def _rounds(self, underway: list[Underway]) -> Iterator[int]:
        """By number: those planned, those that an interrupted run had begun, then one more as long as it needs one."""
        yield from range(self.plan.rounds)
        begun = self.outcome.rounds
        while self.rounds < begun or self._wants_more():
            self.rounds += 1
            for one in underway:
                self.listener.more(one.program.name, len(one.well))
            yield self.rounds - 1
        if self.plan.until:
            for one in underway:
                self.listener.done(one.program.name, self.plan.open_end)

    def _wants_more(self) -> bool:
        until = self.plan.until
        if until is None or self.rounds >= until.at_most_rounds:
            return False
        half_width = self.half_width(self.outcome)
        if half_width is None or half_width <= until.half_width:
            return False
        self.listener.say(f"after {self.rounds} rounds the widest interval is ±{100 * half_width:.3g} %: one more")
        return True

    def _learn(self, what: str, entry: dict) -> None:
        getattr(self.outcome, what).append(entry)
        self.journal.note(what, entry)

    def _complete(self, program: Program, allocators: list[Allocator]) -> bool:
        """Everything there is to know of the program was learnt before the run was interrupted."""
        name, known = program.name, self.outcome
        if known.failed(name, "glibc") and name not in known.glibc_peak_kib:
            return True
        if name not in known.glibc_peak_kib:
            return False
        return all(known.failed(name, a.name) or not self._ahead(program, a) for a in allocators)

    def _ahead(self, program: Program, allocator: Allocator) -> list[str | int]:
        """What is still to be measured: rounds by number, "count", "latency"; "until": nobody knows how many rounds."""
        name, known = program.name, self.outcome
        ahead: list[str | int] = [r for r in range(self.plan.rounds) if not known.has(name, allocator.name, r)]
        ahead += ["until"] if self.plan.until else []
        for wanted, what, rows in (
            (self.plan.count, "count", known.counts),
            (self.plan.latency, "latency", known.latencies),
        ):
            done = any((row["workload"], row["allocator"]) == (name, allocator.name) for row in rows)
            ahead += [what] if wanted and not done else []
        return ahead

    def _begin(self, program: Program, allocators: list[Allocator]) -> Underway | None:
        """Input and warm-up; None where there is nothing to measure."""
        if self.plan.fitting and program.suite == "multi":
            allocators = [one for one in allocators if not one.for_one_thread]
        missing = program.missing()
        if missing or not allocators or self._complete(program, allocators):
            if missing and not any(entry["workload"] == program.name for entry in self.outcome.skipped):
                self._learn("skipped", {"workload": program.name, "why": f"not installed: {', '.join(missing)}"})
                self.listener.say(f"{program.name} is left out: not installed: {', '.join(missing)} (lab/apt.txt)")
            self.listener.done(program.name, self.plan.runs_each)
            return None
        self.listener.step(program.name, "", "input")
        program.prepare(self.context)
        left_out = len(self.plan.allocators) - len(allocators)
        self.listener.done(program.name, left_out * self.plan.runs_under_each)
        return self._warm_up(program, allocators)

    def _round(self, one: Underway, round_: int) -> None:
        """One round of a program under all its allocators; what was disturbed is repeated."""
        program = one.program
        waiting = [a for a in one.well if not self.outcome.has(program.name, a.name, round_)]
        self.listener.done(program.name, len(one.well) - len(waiting))
        if not waiting:
            return
        attempts: dict[str, list[Attempt]] = {allocator.name: [] for allocator in waiting}
        for again in range(1 + self.patience.retries):
            if again:
                quiet.wait_until_quiet(self.patience.wait_s)
            for allocator in turns(waiting, round_):
                taken = attempts[allocator.name]
                if taken and not best_of(taken).disturbed:
                    continue
                self.listener.step(program.name, allocator.name, f"round {round_ + 1}")
                try:
                    taken.append(self._attempt(program, allocator))
                except RunFailed as why:
                    self._fail(program, allocator, str(why))
                    waiting, one.well = _without(waiting, allocator), _without(one.well, allocator)
                    self.listener.done(program.name, self.rounds - round_ + self.plan.count + self.plan.latency)
            if not any(best_of(attempts[allocator.name]).disturbed for allocator in waiting):
                break
        for allocator in waiting:
            self._count_in(program, allocator, round_, attempts[allocator.name])
            self.listener.done(program.name)

    def _attempt(self, program: Program, allocator: Allocator) -> Attempt:
        self.toucher.touch(64 + self.peak_kib[program.name] * 5 // 4 // 1024)
        watch = quiet.Watch().start()
        settings = allocator.settings_for(self.outcome.glibc_peak_kib[program.name])
        taken = sample.run(program, self.context, allocator.preload, settings, allocator.has_support)
        return Attempt(taken, watch.stop(), watch.wall)

    def _count_in(self, program: Program, allocator: Allocator, round_: int, attempts: list[Attempt]) -> None:
        best = best_of(attempts)
        self.patience.learn(best.disturbed)
        threads = program.threads or (self.context.threads if program.suite == "multi" else 1)
        result = Result(
            program.name, allocator.name, round_, threads, best.sample, best.foreign_s, best.disturbed, len(attempts)
        )
        self.outcome.results.append(result)
        self.journal.note("results", result_line(result))

    def _optional(self, one: Underway) -> None:
        for allocator in one.well:
            for what, unit in (("count", self._count), ("latency", self._latency)):
                if what in self._ahead(one.program, allocator):
                    self.listener.step(one.program.name, allocator.name, what)
                    self._guarded(unit, one.program, allocator)
                if getattr(self.plan, what):
                    self.listener.done(one.program.name)

    def _guarded(self, unit: Callable[..., None], program: Program, allocator: Allocator, *more) -> None:
        """Does it; a run that fails is noted, and the rest goes on."""
        try:
            unit(program, allocator, *more)
        except RunFailed as why:
            self._fail(program, allocator, str(why))

    def _fail(self, program: Program, allocator: Allocator, why: str) -> None:
        self._learn("failures", {"workload": program.name, "allocator": allocator.name, "why": why})
        self.listener.say(f"{program.name} under {allocator.name}: {why}")

    def _warm_up(self, program: Program, allocators: list[Allocator]) -> Underway | None:
        """Untimed runs; they say under which allocators the program works and is really served by them."""
        self.listener.step(program.name, "glibc", "reference")
        try:
            reference = sample.run(program, self.context, "")
            compared = not program.may_vary or sample.run(program, self.context, "").output == reference.output
        except RunFailed as why:
            self._learn("failures", {"workload": program.name, "allocator": "glibc", "why": f"reference: {why}"})
            self.listener.say(f"{program.name} is left out: it fails under glibc: {why}")
            self.listener.done(program.name, 1 + len(allocators) * self.plan.runs_under_each + self.plan.open_end)
            return None
        if not compared:
            self.listener.say(f"{program.name}: its output varies from run to run, and is not compared")
        self.outcome.glibc_peak_kib[program.name] = reference.peak_rss_kib
        self.journal.note("peaks", {program.name: reference.peak_rss_kib})
        self.peak_kib[program.name] = reference.peak_rss_kib
        self.listener.done(program.name)
        well, fastest_s = [], reference.wall_s
        for allocator in allocators:
            self.listener.step(program.name, allocator.name, "warm-up")
            if self.outcome.failed(program.name, allocator.name):  # in an earlier part of this run
                self.listener.done(program.name, self.plan.runs_under_each)
                continue
            try:
                taken = self._prove(program, allocator, reference if compared else None)
            except RunFailed as why:
                self._fail(program, allocator, str(why))
                self.listener.done(program.name, self.plan.runs_under_each)
                continue
            well.append(allocator)
            fastest_s = min(fastest_s, taken.wall_s)  # the first run was perhaps slowed by cold files
            self.listener.done(program.name)
        self.listener.expect(program.name, fastest_s * self._times(program))
        return Underway(program, well)

    def _times(self, program: Program) -> int:
        task = program.run(self.context)
        return 1 if isinstance(task, Server) else task.times

    def _prove(self, program: Program, allocator: Allocator, reference: Sample | None) -> Sample:
        """An untimed run; RunFailed where the program does not work under the allocator, or is not served by it."""
        settings = allocator.settings_for(self.outcome.glibc_peak_kib[program.name])
        extra = {**settings, **(proof.debug_environment(self.context.scratch) if allocator.preload else {})}
        taken = sample.run(program, self.context, allocator.preload, extra)
        self.peak_kib[program.name] = max(self.peak_kib[program.name], taken.peak_rss_kib)
        if reference and taken.output != reference.output:
            raise RunFailed("its output differs from that under glibc")
        if allocator.preload:
            complaint = proof.complaint(self.context.scratch, allocator.preload, allocator.companions)
            if complaint is not None:
                raise RunFailed(complaint)
        return taken

    def _count(self, program: Program, allocator: Allocator) -> None:
        from annex_lab import count

        self._learn("counts", count.measure(program, self.context, allocator))

    def _latency(self, program: Program, allocator: Allocator) -> None:
        from annex_lab import latency

        for row in latency.measure(program, self.context, allocator):
            self._learn("latencies", row)
