"""What a figure is: the runs that it needs, the cells that come of them, how it is drawn."""

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from annex_lab.sim import machines
from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.host import Measurement
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.values import Results

LEAST_SCALE = 0.0001  # of annex-lab sim


@dataclass(frozen=True)
class Choice:
    """What is asked for: which part of the figures, how much work, how many seeds."""

    scales: dict[str, float]  # by workload
    allocators: tuple[str, ...]
    workloads: tuple[str, ...] = ()  # only these; none: all
    seeds: tuple[int, ...] = (1, 2, 3)
    scale_factor: float = 1.0
    rounds: int = 5  # of what is measured on this machine
    other_work: Mapping[str, int] = field(default_factory=dict)  # by workload, in instructions: program.work
    asked_for: bool = False  # these allocators; else they are the paper's
    sizes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by workload, where they are not its own
    in_software: Mapping[str, str] = field(default_factory=dict)  # who stands there for those that need a unit
    one_seed: Collection[str] = ()  # workloads that have the first seed alone, in the place of each

    def of(self, workloads: Iterable[str]) -> list[str]:
        return [name for name in workloads if not self.workloads or name in self.workloads]

    def among(self, allocators: Iterable[str]) -> list[str]:
        return [name for name in allocators if name in self.allocators]

    def run(
        self, workload: str, allocator: str, threads: int, seed: int, hardware: str = "", settings: tuple[str, ...] = ()
    ) -> Spec:
        allocator = allocator if hardware else self.in_software.get(allocator, allocator)
        seed = self.seeds[0] if workload in self.one_seed else seed
        scale = max(LEAST_SCALE, self.scales[workload] * self.scale_factor)
        if self.other_work.get(workload):
            settings = (*settings, f"program.work={self.other_work[workload]}")
        machine, sizes = machines.for_threads(threads), self.sizes.get(workload, ())
        return Spec(workload, allocator, threads, seed, scale, machine, hardware, settings, sizes)

    def maker(
        self, allocator: str, threads: int, hardware: str = "", settings: tuple[str, ...] = ()
    ) -> Callable[[str, int], Spec]:
        """The run by workload and seed."""
        return lambda workload, seed: self.run(workload, allocator, threads, seed, hardware, settings)


def each(make: Callable[[str, int], Spec], workloads: Iterable[str], seeds: Iterable[int]) -> list[Spec]:
    return [make(workload, seed) for workload, seed in itertools.product(workloads, seeds)]


@dataclass(frozen=True)
class Figure:
    name: str  # its number in the paper
    title: str
    reads: str  # how to read it: what is what, and what differs from the paper's
    runs: Callable[[Choice], list[Spec]] = lambda choice: []
    cells: Callable[[Choice, Results], list[Cell]] = lambda choice, results: []
    measurements: Callable[[Choice], list[Measurement]] = lambda choice: []  # on this machine, beside the runs
    drawn: str = "bars"  # or lines: rows are points of a line
    unit: str = ""  # of what is drawn
    pictured: Callable[[str], bool] = lambda panel: True  # the panels that are drawn; the others are tables only
    missing: Callable[[], str] = lambda: ""  # why it cannot be made
    kind: str = "Figure"  # or Table: what the paper calls it, before its name; "": the paper has none
    allocators: tuple[str, ...] = ()  # where none are asked for, and they are others than the paper's

    def chosen(self, choice: Choice) -> Choice:
        """With the figure's own allocators where none are asked for."""
        return replace(choice, allocators=self.allocators) if self.allocators and not choice.asked_for else choice

    @property
    def called(self) -> str:
        return f"{self.kind} {self.name.removeprefix(self.kind.lower())}" if self.kind else self.name


@dataclass(frozen=True)
class Paper:
    """A paper's figures, and what they share."""

    name: str  # of the command
    title: str
    figures: list[Figure]
    scales: dict[str, float]  # how much of each workload is simulated
    allocators: tuple[str, ...]  # that it is about, where others can be asked for
    sizes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of workloads, where they are not their own
    in_software: Mapping[str, str] = field(default_factory=dict)  # as of Choice
    one_seed: Collection[str] = ()  # as of Choice

    def heading(self, figure: Figure) -> str:
        named = f"{self.title}'s {figure.called}" if figure.kind else f"Beside {self.title}'s figures"
        return f"{named}: {figure.title}"
