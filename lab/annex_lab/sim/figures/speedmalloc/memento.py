"""Memento+ with and without its page allocator, beside software and the support core: in the paper a line of Figures 8
and 9, of which its text gives means alone."""

from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.speedmalloc import paper
from annex_lab.sim.figures.speedmalloc.common import BUILT_ATOP, MANY, MEMENTO, MULTI, SUPPORT, TODAY, speedup, table
from annex_lab.sim.figures.values import LEVEL, MEAN, Column, Missing, Results, Value, in_panel, of, over

PAGES = f"{MEMENTO}-pages"
BASE = "jemalloc"
STEPS = {MEMENTO: "Memento+", PAGES: "with the page allocator"}
FASTER = "workloads of which each seed is faster"


def _runs(choice: Choice) -> list[Spec]:
    made = []
    for name in dict.fromkeys([BASE, *choice.allocators]):
        made += each(choice.maker(name, MANY), choice.of(MULTI), choice.seeds)
    for name in choice.allocators:
        for hardware in (*STEPS, SUPPORT):
            made += each(choice.maker(name, MANY, hardware), choice.of(MULTI), choice.seeds)
    return made


def _support_over(choice: Choice, name: str, hardware: str) -> Value:
    return over(of(choice.maker(name, MANY, hardware), "cycles"), of(choice.maker(name, MANY, SUPPORT), "cycles"))


def _columns(choice: Choice, name: str) -> dict[str, list[Column]]:
    """By panel."""
    atop = name == BUILT_ATOP
    over_jemalloc = {MEAN: paper.MEMENTO_OVER_JEMALLOC} if atop else {}
    support = {MEAN: paper.SPEEDUP_OVER_HARDWARE[MEMENTO]} if atop else {}
    mine, both = STEPS.items(), [*STEPS, SUPPORT]
    return {
        f"{name}, over itself in software": [
            Column(STEPS.get(hardware, "support core"), speedup(choice, name, name, MANY, hardware))
            for hardware in both
        ],
        f"{name}, over {BASE} in software": [
            Column(called, speedup(choice, name, BASE, MANY, hardware), over_jemalloc if hardware == MEMENTO else {},
                   "6.2.1, a quotient") for hardware, called in mine
        ],
        f"{name}, the support core over it": [
            Column(called, _support_over(choice, name, hardware), support if hardware == MEMENTO else {}, "6.2.1")
            for hardware, called in mine
        ],
    }  # fmt: skip


def _count(choice: Choice, results: Results, panel: str, column: Column) -> Cell:
    """Of how many workloads every seed is above one, by more than counts."""
    workloads, faster = choice.of(MULTI), 0
    try:
        for workload in workloads:
            faster += all(column.value(results, workload, seed) > 1 + LEVEL for seed in choice.seeds)
    except Missing as why:
        return Cell(FASTER, panel, column.series, None, note=str(why))
    return Cell(FASTER, panel, column.series, float(faster), note=f"of {len(workloads)}")


def _cells(choice: Choice, results: Results) -> list[Cell]:
    found, counts = [], []
    for name in choice.allocators:
        for panel, columns in _columns(choice, name).items():
            found += table(choice, results, columns, choice.of(MULTI), in_panel(panel))
            counts += [_count(choice, results, panel, column) for column in columns]
    return found + counts


MEMENTO_PLUS = Figure(
    "memento",
    "Memento+",
    "16 threads. Each allocator in software behind the unit: it gives the blocks their places, and serves those of "
    "more than 512 bytes. The paper built Memento+ atop TCMalloc; its mean over jemalloc is the quotient of "
    "SpeedMalloc's over jemalloc and over Memento+.",
    _runs,
    _cells,
    unit="speedup",
    pictured=lambda panel: panel.endswith("in software"),
    kind="",
    allocators=TODAY,
)
