"""Not in the paper, which could not: every allocator, unmodified, on the support core."""

from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.speedmalloc.common import MULTI, REAL, SUPPORT, speedup
from annex_lab.sim.figures.values import AVERAGE, MEAN, Column, Results, cells, in_panel, of

ALLOCATORS = (
    *("glibc", "jemalloc", "tcmalloc", "gperftools", "mimalloc2", "mimalloc3", "snmalloc", "rpmalloc"),
    *("annex", "annex-solo", "annex-offload"),
)
THREADS = (1, 4, 16)
FACTOR = 0.25  # of the other figures' work: there are many runs


def _smaller(choice: Choice) -> Choice:
    return Choice(choice.scales, choice.allocators, choice.workloads, choice.seeds, choice.scale_factor * FACTOR)


def _workloads(choice: Choice, threads: int) -> list[str]:
    return choice.of([*MULTI, *REAL] if threads == 1 else MULTI)


def _runs(choice: Choice) -> list[Spec]:
    less, made = _smaller(choice), []
    for threads in THREADS:
        for name in ALLOCATORS:
            made += each(less.maker(name, threads, SUPPORT), _workloads(choice, threads), choice.seeds)
    for name in ALLOCATORS:
        made += each(less.maker(name, 16), _workloads(choice, 16), choice.seeds[:1])
    return made


def _cells(choice: Choice, results: Results) -> list[Cell]:
    less, found = _smaller(choice), []
    for threads in THREADS:
        where = in_panel(f"cycles a call there, {threads} main core{'s' if threads > 1 else ''}")
        for name in ALLOCATORS:
            column = Column(name, of(less.maker(name, threads, SUPPORT), "cycles_a_call"), mean=AVERAGE)
            found += cells(results, column, _workloads(choice, threads), choice.seeds, where)
    where = in_panel("speedup over itself in software, 16 main cores, first seed")
    for name in ALLOCATORS:
        column = Column(name, speedup(less, name, name, 16, SUPPORT), mean=MEAN)
        found += cells(results, column, _workloads(choice, 16), choice.seeds[:1], where)
    return found


EVERY_ALLOCATOR = Figure(
    "allocators",
    "Every allocator on the support core",
    "Unmodified, with the calls of all threads; programs of one thread have one main core. In brackets the lowest and "
    "the highest seed.",
    _runs,
    _cells,
    unit="cycles a call, or speedup",
    pictured=lambda panel: panel.startswith("speedup"),
)
