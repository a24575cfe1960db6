"""The abstract's reason for its speed, tried: fewer cache misses, less for the TLBs to do. Simulated, one thread."""

from dataclasses import replace

from annex_lab.sim.figures import metrics
from annex_lab.sim.figures.batchit import benchmarks
from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.exgen.claims import BENCH, OURS
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.values import Column, Results, Value, cells, in_panel, of, over

# Of the programs of the claim those that are simulated elsewhere, and as much of them as there.
SCALES = {name: benchmarks.SCALES[name] for name in BENCH if name in benchmarks.SCALES}
EVENTS = {
    "misses of the L1D": (metrics.L1D_MISSES,),
    "misses of the last level": (metrics.LLC_LOAD_MISSES, metrics.LLC_STORE_MISSES),
    "page walks": (metrics.PAGE_WALKS,),
    "instructions": ("instructions",),
}


def _simulated(choice: Choice) -> Choice:
    return replace(choice, scales=SCALES)


def _runs(choice: Choice) -> list[Spec]:
    asked = _simulated(choice)
    if not choice.among([OURS]):
        return []
    return [
        spec for name in choice.allocators for spec in each(asked.maker(name, 1), choice.of(SCALES), choice.seeds[:1])
    ]


def _events(choice: Choice, allocator: str, names: tuple[str, ...]) -> Value:
    values = [of(choice.maker(allocator, 1), name) for name in names]
    return lambda results, workload, seed: sum(value(results, workload, seed) for value in values)


def _cells(choice: Choice, results: Results) -> list[Cell]:
    asked, found = _simulated(choice), []
    if not choice.among([OURS]):
        return []
    for event, names in EVENTS.items():
        for other in choice.allocators:
            if other == OURS:
                continue
            column = Column(other, over(_events(asked, OURS, names), _events(asked, other, names)))
            found += cells(results, column, choice.of(SCALES), choice.seeds[:1], in_panel(f"{event}, over each's"))
    return found


MISSES = Figure(
    "misses",
    "Cache misses and page walks of a flavour for one thread",
    f"Simulated on one of SpeedMalloc's cores: events of {OURS} over those under each, of the whole program; below 1 "
    "it has fewer. The abstract says that counters attribute its gains to fewer cache misses and to TLBs, and gives "
    "no number. Programs as in the claim, shorter, without ghostscript, lua and z3; the first seed.",
    _runs,
    _cells,
    unit="over each's",
    kind="",
)
