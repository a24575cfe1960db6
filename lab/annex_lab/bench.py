"""The schedule: which program runs when under which allocator, so that the comparison is fair.

- Allocators take turns (A B C, B C A, ...), so that a slow phase of the machine falls on all of them alike.
- Before each sample the memory it will need is touched and released by another process (see native/toucher.c).
- A sample during which other processes used CPU is repeated, a bounded number of times; the least disturbed one counts.
- Every program first runs once under glibc and once under each allocator, untimed: that fills the page cache, compares
  the output with glibc's, and proves that the allocator serves the program (see proof.py).
"""

import contextlib
import dataclasses
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from annex_lab import paths, proof, quiet, sample
from annex_lab.allocators import Allocator
from annex_lab.programs.model import Context, Program, Server
from annex_lab.sample import RunFailed, Sample


@dataclass(frozen=True)
class Plan:
    programs: list[Program]
    allocators: list[Allocator]
    rounds: int = 5
    retries: int = 2  # more tries for a disturbed sample
    patience_s: float = 3.0  # how long to wait for a quiet machine before each sample


@dataclass
class Result:
    """One sample that counts."""

    workload: str
    allocator: str
    round: int
    threads: int
    sample: Sample
    foreign_s: float  # CPU that others used meanwhile
    disturbed: bool
    tries: int


@dataclass
class Outcome:
    results: list[Result] = field(default_factory=list)
    failures: list[dict[str, str]] = field(default_factory=list)
    skipped: list[dict[str, str]] = field(default_factory=list)
    glibc_peak_kib: dict[str, int] = field(default_factory=dict)
    interrupted: bool = False


class Listener:
    """What the bench tells whoever watches; the command line shows a progress bar."""

    def expect(self, program: str, seconds: float) -> None:
        """What a run of the program takes, now that it is known."""

    def step(self, program: str, allocator: str, what: str) -> None:
        """A run begins."""

    def done(self, program: str, runs: int = 1) -> None:
        """So many runs of the program are behind us (or were dropped)."""

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
            library = Path(shutil.copy(library, folder / f"{allocator.name}.so"))
        copies.append(dataclasses.replace(allocator, library=library))
    try:
        yield copies
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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


def least_disturbed(attempt: Callable[[], Attempt], retries: int) -> tuple[Attempt, int]:
    """Takes samples until one is undisturbed, at most 1 + retries; returns the best and how many were taken."""
    taken: list[Attempt] = []
    while len(taken) <= retries:
        taken.append(attempt())
        if not taken[-1].disturbed:
            return taken[-1], len(taken)
    return min(taken, key=lambda one: one.foreign_share), len(taken)


class Bench:
    def __init__(self, plan: Plan, context: Context, listener: Listener):
        self.plan, self.context, self.listener = plan, context, listener
        self.outcome = Outcome()
        self.patience = quiet.Patience(plan.patience_s, plan.retries)
        self.peak_kib: dict[str, int] = {}  # the highest seen of each program, for the toucher

    def run(self) -> Outcome:
        """Measures everything; an interruption keeps what is done."""
        try:
            with private_copies(self.plan.allocators) as allocators:
                for program in self.plan.programs:
                    self._measure(program, allocators)
        except KeyboardInterrupt:
            self.outcome.interrupted = True
        finally:
            shutil.rmtree(self.context.scratch, ignore_errors=True)
        return self.outcome

    def _runs_of(self, allocators: int) -> int:
        return 1 + allocators * (1 + self.plan.rounds)

    def _measure(self, program: Program, allocators: list[Allocator]) -> None:
        missing = program.missing()
        if missing:
            self.outcome.skipped.append({"workload": program.name, "why": f"not installed: {', '.join(missing)}"})
            self.listener.say(f"{program.name} is left out: not installed: {', '.join(missing)} (lab/apt.txt)")
            self.listener.done(program.name, self._runs_of(len(allocators)))
            return
        self.listener.step(program.name, "", "input")
        program.prepare(self.context)
        well = self._warm_up(program, allocators)
        for round_ in range(self.plan.rounds if well else 0):
            for allocator in turns(well, round_):
                self.listener.step(program.name, allocator.name, f"round {round_ + 1}")
                try:
                    self._sample(program, allocator, round_)
                except RunFailed as why:
                    self._fail(program, allocator, str(why))
                self.listener.done(program.name)

    def _fail(self, program: Program, allocator: Allocator, why: str) -> None:
        self.outcome.failures.append({"workload": program.name, "allocator": allocator.name, "why": why})
        self.listener.say(f"{program.name} under {allocator.name}: {why}")

    def _warm_up(self, program: Program, allocators: list[Allocator]) -> list[Allocator]:
        """Untimed runs; returns the allocators under which the program works and is really served by them."""
        self.listener.step(program.name, "glibc", "reference")
        try:
            reference = sample.run(program, self.context, "")
            compared = not program.may_vary or sample.run(program, self.context, "").output == reference.output
        except RunFailed as why:
            self.outcome.failures.append({"workload": program.name, "allocator": "glibc", "why": f"reference: {why}"})
            self.listener.say(f"{program.name} is left out: it fails under glibc: {why}")
            self.listener.done(program.name, self._runs_of(len(allocators)))
            return []
        if not compared:
            self.listener.say(f"{program.name}: its output varies from run to run, and is not compared")
        self.outcome.glibc_peak_kib[program.name] = reference.peak_rss_kib
        self.peak_kib[program.name] = reference.peak_rss_kib
        times = self.program_times(program)
        self.listener.expect(program.name, reference.wall_s * times)
        self.listener.done(program.name)
        well = []
        for allocator in allocators:
            self.listener.step(program.name, allocator.name, "warm-up")
            why = self._works(program, allocator, reference if compared else None)
            if why is None:
                well.append(allocator)
            else:
                self._fail(program, allocator, why)
            self.listener.done(program.name, 1 if why is None else 1 + self.plan.rounds)
        return well

    def program_times(self, program: Program) -> int:
        task = program.run(self.context)
        return 1 if isinstance(task, Server) else task.times

    def _works(self, program: Program, allocator: Allocator, reference: Sample | None) -> str | None:
        extra = {**allocator.env, **(proof.debug_environment(self.context.scratch) if allocator.preload else {})}
        try:
            taken = sample.run(program, self.context, allocator.preload, extra)
        except RunFailed as why:
            return str(why)
        self.peak_kib[program.name] = max(self.peak_kib[program.name], taken.peak_rss_kib)
        if reference and taken.output != reference.output:
            return "its output differs from that under glibc"
        return proof.complaint(self.context.scratch, allocator.preload) if allocator.preload else None

    def _sample(self, program: Program, allocator: Allocator, round_: int) -> None:
        def attempt() -> Attempt:
            quiet.wait_until_quiet(self.patience.wait_s)
            sample.touch(64 + self.peak_kib[program.name] * 5 // 4 // 1024)
            watch = quiet.Watch().start()
            taken = sample.run(program, self.context, allocator.preload, allocator.env)
            return Attempt(taken, watch.stop(), watch.wall)

        best, tries = least_disturbed(attempt, self.patience.retries)
        self.patience.learn(best.disturbed)
        threads = program.threads or (self.context.threads if program.suite == "multi" else 1)
        self.outcome.results.append(
            Result(program.name, allocator.name, round_, threads, best.sample, best.foreign_s, best.disturbed, tries)
        )
