"""Figures 2 to 5: an allocator with batches over the same without; its queues are one a heap, or one a slab."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from annex_lab.sim.figures import metrics
from annex_lab.sim.figures.batchit import measured, paper
from annex_lab.sim.figures.batchit.benchmarks import ALL, MESSAGES, SUITE, Benchmark, asked, maker
from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.host import Measurement
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.values import Column, Results, cells, in_panel, of, over

BY_HEAP, BY_SLAB = ("snmalloc", "annex"), ("annex-by-slab",)
ALLOCATORS = BY_HEAP + BY_SLAB
TIME, MEMORY = "time", "peak memory"
# Panel -> what of a run it shows. Programs of one thread have no locked instructions but those of their start.
PANELS = {
    TIME: "cycles",
    MEMORY: "peak_resident",
    "cycles in the allocator": metrics.ALLOCATOR_CYCLES,
    "instructions in the allocator": metrics.ALLOCATOR_INSTRUCTIONS,
    "locked instructions in the allocator": metrics.ALLOCATOR_ATOMICS,
}
OF_THREADS = (metrics.ALLOCATOR_ATOMICS,)


def unbatched(allocator: str) -> str:
    """The same allocator, built without batches."""
    return f"{allocator}-unbatched"


def measurements(choice: Choice) -> list[Measurement]:
    """On this machine: all strategies side by side, whichever of them a figure shows."""
    bases = choice.among(ALLOCATORS)
    return measured.measurement(choice, [name for base in bases for name in (base, unbatched(base))])


@dataclass(frozen=True)
class Effect:
    """One of the four: what batches do to allocators over some benchmarks."""

    allocators: tuple[str, ...]
    benchmarks: Mapping[str, Benchmark]
    known: Mapping[str, Mapping[str, float]]  # the paper's numbers by panel, of the first allocator
    known_from: str
    mean: bool  # of benchmarks that are the same program with more and more threads there is none

    def runs(self, choice: Choice) -> list[Spec]:
        return [
            spec
            for allocator in choice.among(self.allocators)
            for name in (allocator, unbatched(allocator))
            for spec in each(maker(choice, name), asked(choice, self.benchmarks), choice.seeds)
        ]

    def cells(self, choice: Choice, results: Results) -> list[Cell]:
        return [
            cell
            for panel, metric in PANELS.items()
            for allocator in choice.among(self.allocators)
            for cell in self._cells_of(allocator, panel, metric, choice, results)
        ]

    def with_measured(self, choice: Choice, results: Results) -> list[Cell]:
        """The simulated cells, and those of this machine below them."""
        series = {name: (name, [unbatched(name)]) for name in choice.among(self.allocators)}
        return [*self.cells(choice, results), *measured.cells(choice, results, measurements(choice), series)]

    def _cells_of(self, allocator: str, panel: str, metric: str, choice: Choice, results: Results) -> list[Cell]:
        rows = asked(choice, self.benchmarks)
        if metric in OF_THREADS:
            rows = [name for name in rows if ALL[name].threads > 1]
        if not rows:
            return []
        value = over(*(of(maker(choice, name), metric) for name in (allocator, unbatched(allocator))))
        known = self.known.get(panel, {}) if allocator == self.allocators[0] else {}
        with_mean = cells(
            results, Column(allocator, value, known, self.known_from), rows, choice.seeds, in_panel(panel)
        )
        return with_mean if self.mean else with_mean[:-1]


_OVER = (
    "The allocator with batches over the same built without. Below 1: batches help. Cycles, instructions and locked "
    "instructions in the allocator are of all threads together. "
)
_SUITE = (
    "16 threads where the paper has 72 cores, and a fixed amount of work where five of mimalloc-bench's programs run "
    "for a fixed time: there less time and more throughput are the same. Ours of xmalloc-test has a bound on what is "
    "under way, so that faster producers take no more memory. barnes, gs, lua, redis, rocksdb and z3 are not run."
)
_MESSAGES = (
    "N producers and N consumers, a core each. The paper's ran on 72 cores; in ours a consumer without messages, and a "
    "producer of too many, sleeps. The panels called measured are of a real machine, where more threads than CPUs take "
    "turns: a number is the ratio of medians over the rounds, in parentheses are the lowest and the highest round."
)
_HEAPS = (
    "snmalloc 0.7.6, and Annex's shared flavour as it is: a queue for each heap. The paper's numbers are snmalloc's. "
)
_SLABS = (
    "The paper's variant of mimalloc was never published. In its place stands Annex built with a queue for each slab "
    "(target annex-by-slab-shared), as mimalloc has, and the same without batches, so that each remote free is a "
    "compare-and-swap of its own. Its outbox has 128 slabs, the paper's 16; its owner takes a batch without walking "
    "it, which the paper's doesn't. The paper's numbers beside it are its mimalloc's. "
)


def _figure(name: str, title: str, reads: str, effect: Effect) -> Figure:
    return Figure(name, title, reads, effect.runs, effect.cells, unit="with batches / without")


def _messages(name: str, title: str, reads: str, effect: Effect) -> Figure:
    return replace(_figure(name, title, reads, effect), cells=effect.with_measured, measurements=measurements)


FIGURE_2 = _figure(
    "2",
    "What batches do to queues for each heap, mimalloc-bench",
    _HEAPS + _OVER + _SUITE,
    Effect(BY_HEAP, SUITE, {TIME: paper.SNMALLOC}, "4.1", mean=True),
)
FIGURE_3 = _figure(
    "3",
    "What batches do to queues for each slab, mimalloc-bench",
    _SLABS + _OVER + _SUITE,
    Effect(BY_SLAB, SUITE, {TIME: paper.MIMALLOC}, "4.2, mimalloc", mean=True),
)
FIGURE_4 = _messages(
    "4",
    "What batches do to queues for each heap, message passing",
    _HEAPS + _OVER + _MESSAGES,
    Effect(
        BY_HEAP,
        MESSAGES,
        {TIME: paper.MESSAGES, MEMORY: paper.MEMORY},
        "the results that go with Figure 4; 4.3",
        mean=False,
    ),
)
FIGURE_5 = _messages(
    "5",
    "What batches do to queues for each slab, message passing",
    _SLABS + _OVER + _MESSAGES,
    Effect(BY_SLAB, MESSAGES, {MEMORY: paper.MEMORY}, "4.3", mean=False),
)
