"""Beside BatchIt's figures: Annex over the better of its bases, what a remote free costs, other caches of open batches,
and Annex among its peers."""

from dataclasses import replace

from annex_lab.allocators import OPEN_BATCHES_OF
from annex_lab.sim.figures import metrics
from annex_lab.sim.figures.batchit import measured
from annex_lab.sim.figures.batchit.benchmarks import MANY, MESSAGES, asked, maker
from annex_lab.sim.figures.batchit.effect import BY_HEAP, BY_SLAB, MEMORY, TIME, measurements, unbatched
from annex_lab.sim.figures.cells import COUNT, Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.values import Column, Results, Value, cells, in_panel, least, of, over

OURS = "annex"
STRATEGIES = tuple(name for base in (*BY_HEAP, *BY_SLAB) for name in (base, unbatched(base)))
BASES = tuple(unbatched(base) for base in (OURS, *BY_SLAB))
CACHES = tuple(OPEN_BATCHES_OF)
PEERS = ("snmalloc", "mimalloc2", "mimalloc3", "rpmalloc")
TRADING = (*MESSAGES, "xmalloc-testN", "sh8benchN", "larsonN")
COSTS = {
    "locked instructions": metrics.ALLOCATOR_ATOMICS,
    "lines out of other cores' caches": metrics.ALLOCATOR_TRANSFERS,
    "instructions": metrics.ALLOCATOR_INSTRUCTIONS,
    "cycles": metrics.ALLOCATOR_CYCLES,
}
SIZES = {TIME: "cycles", MEMORY: "peak_resident"}


def _value(choice: Choice, allocator: str, metric: str) -> Value:
    return of(maker(choice, allocator), metric)


def _runs(choice: Choice, allocators: tuple[str, ...], benchmarks: tuple[str, ...]) -> list[Spec]:
    rows = asked(choice, benchmarks)
    return [spec for one in choice.among(allocators) for spec in each(maker(choice, one), rows, choice.seeds)]


def _column(results: Results, choice: Choice, panel: str, column: Column, benchmarks: tuple[str, ...]) -> list[Cell]:
    rows = asked(choice, benchmarks)
    return cells(results, column, rows, choice.seeds, in_panel(panel))[:-1] if rows else []


def _costs(choice: Choice, results: Results) -> list[Cell]:
    return [
        cell
        for panel, metric in COSTS.items()
        for name in choice.among(STRATEGIES)
        for cell in _column(
            results,
            choice,
            panel,
            Column(name, over(_value(choice, name, metric), _value(choice, name, metrics.FREES)), unit=COUNT),
            tuple(MESSAGES),
        )
    ]


def _ratios(choice: Choice, results: Results, pairs: list[tuple[str, str, str]], rows: tuple[str, ...]) -> list[Cell]:
    """Pairs: how the series is called, whose number, and over whose."""
    return [
        cell
        for panel, metric in SIZES.items()
        for series, one, base in pairs
        for cell in _column(
            results,
            choice,
            panel,
            Column(series, over(_value(choice, one, metric), _value(choice, base, metric))),
            rows,
        )
    ]


def _bases_there(choice: Choice) -> bool:
    return set(choice.among((OURS, *BY_SLAB))) == {OURS, *BY_SLAB}


def _bases_runs(choice: Choice) -> list[Spec]:
    return (
        _runs(replace(choice, allocators=(OURS, *BASES)), (OURS, *BASES), tuple(MESSAGES))
        if _bases_there(choice)
        else []
    )


def _over_the_better(choice: Choice, results: Results) -> list[Cell]:
    if not _bases_there(choice):
        return []
    bases = least(*(_value(choice, base, SIZES[TIME]) for base in BASES))
    simulated = Column(OURS, over(_value(choice, OURS, SIZES[TIME]), bases))
    return [
        *_column(results, choice, TIME, simulated, tuple(MESSAGES)),
        *measured.cells(choice, results, measurements(choice), {OURS: (OURS, BASES)}),
    ]


OVER_THE_BETTER = Figure(
    "bases",
    "Annex with batches over the better of its two bases without, message passing",
    "Over Annex's queues of each heap or those of each slab, both without batches, whichever takes less (of memory: "
    "has the lower peak). The panels called measured are of a real machine, as in Figures 4 and 5.",
    _bases_runs,
    _over_the_better,
    measurements=lambda choice: measurements(choice) if _bases_there(choice) else [],
    unit="with batches / the better without",
    kind="",
)
COST = Figure(
    "cost",
    "What a free of another's block costs the allocator, by strategy, message passing",
    "Of all threads' allocator code together, malloc's too, divided by the calls of free. With batches and without: "
    "queues of each heap (snmalloc, annex) and of each slab (annex-by-slab). A line that was in another core's cache "
    "is one that somebody else wrote: an owner's touches of what others freed are among them.",
    lambda choice: _runs(choice, STRATEGIES, tuple(MESSAGES)),
    _costs,
    unit="a free",
    kind="",
    allocators=STRATEGIES,
)
SHAPES = Figure(
    "caches",
    "Other caches of open batches, message passing",
    "Annex built with another cache over Annex as it is (64 sets of 2 ways, the longest batch goes; targets "
    "annex-batches-...-shared). NxM: sets and ways; recent: the batch used longest ago goes; random: any; low-bits: a "
    "slab's set is its number modulo 64.",
    lambda choice: _runs(choice, (OURS, *CACHES), tuple(MESSAGES)),
    lambda choice, results: _ratios(
        choice, results, [(name, name, OURS) for name in choice.among(CACHES)], tuple(MESSAGES)
    ),
    unit="over 64x2",
    kind="",
    allocators=(OURS, *CACHES),
)
AMONG_PEERS = Figure(
    "peers",
    "Annex among its peers where blocks are freed by others",
    f"Annex over each: below 1 it is faster, or holds less at most. {MANY} threads, and a producer and a consumer on "
    "a core each for msgpass.",
    lambda choice: _runs(choice, (OURS, *PEERS), TRADING),
    lambda choice, results: _ratios(choice, results, [(name, OURS, name) for name in choice.among(PEERS)], TRADING),
    unit="Annex / the other",
    kind="",
    allocators=(OURS, *PEERS),
)
