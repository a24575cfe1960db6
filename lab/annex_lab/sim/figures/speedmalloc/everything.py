"""Not in the paper, which could not: every allocator, unmodified, on the support core."""

from dataclasses import replace

from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.speedmalloc.common import MULTI, REAL, SUPPORT, speedup
from annex_lab.sim.figures.values import MEAN, Column, Results, cells, in_panel, of

ALLOCATORS = (
    *("glibc", "jemalloc", "tcmalloc", "gperftools", "mimalloc2", "mimalloc3", "snmalloc", "rpmalloc"),
    *("annex", "annex-solo", "annex-offload"),
)
WORKLOADS = (*MULTI, *REAL)
THREADS = (1, 4, 16)
FACTOR = 0.25  # of the other figures' steps: there are many runs


def _smaller(choice: Choice) -> Choice:
    return replace(choice, scale_factor=choice.scale_factor * FACTOR)


def _runs(choice: Choice) -> list[Spec]:
    less, workloads, made = _smaller(choice), choice.of(WORKLOADS), []
    for threads in THREADS:
        for name in ALLOCATORS:
            made += each(less.maker(name, threads, SUPPORT), workloads, choice.seeds)
    for name in ALLOCATORS:
        made += each(less.maker(name, 16), workloads, choice.seeds[:1])
    return made


def _cells(choice: Choice, results: Results) -> list[Cell]:
    less, workloads, found = _smaller(choice), choice.of(WORKLOADS), []
    for threads in THREADS:
        where = in_panel(f"cycles a call there, {threads} main core{'s' if threads > 1 else ''}")
        for name in ALLOCATORS:
            column = Column(name, of(less.maker(name, threads, SUPPORT), "cycles_a_call"))
            found += cells(results, column, workloads, choice.seeds, where)
    where = in_panel("speedup over itself in software, 16 main cores, first seed")
    for name in ALLOCATORS:
        column = Column(name, speedup(less, name, name, 16, SUPPORT), mean=MEAN)
        found += cells(results, column, workloads, choice.seeds[:1], where)
    return found


EVERY_ALLOCATOR = Figure(
    "allocators",
    "Every allocator on the support core",
    "Unmodified, with the calls of all threads, of which the ten have as many as there are main cores and the last six "
    "have one.",
    _runs,
    _cells,
    unit="cycles a call, or speedup",
    pictured=lambda panel: panel.startswith("speedup"),
    kind="",
)
