"""Figures 8 and 9: speedups with one thread, and by threads."""

from dataclasses import replace

from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.speedmalloc import paper
from annex_lab.sim.figures.speedmalloc.common import (
    ANNEX,
    ATOP,
    MANY,
    MEMENTO,
    MULTI,
    OURS,
    OVER_EACH,
    OVER_HARDWARE,
    OVER_ITSELF,
    PEERS,
    SINGLE,
    SUPPORT,
    THREADS,
    accelerated,
    accelerators,
    both,
    bound_runs,
    bounds,
    in_software,
    of_accelerators,
    offloaded,
    over_accelerator,
    speedup,
    table,
)
from annex_lab.sim.figures.values import MEAN, Column, Results, in_panel, in_row

BASE = "jemalloc"
REDIS = "speedup over jemalloc, Redis alone"


def _over_base(choice: Choice, threads: int) -> list[Column]:
    """Speedups over jemalloc in software; with 16 threads the paper's are Table 3's."""
    columns = []
    for name in in_software(choice):
        known = {}
        if threads == MANY and name != BASE and name in paper.OVER_JEMALLOC_MEAN:
            known = paper.OVER_JEMALLOC[name] | {MEAN: paper.OVER_JEMALLOC_MEAN[name]}
        columns.append(Column(name, speedup(choice, name, BASE, threads), known, paper.TABLE))
    for name in choice.allocators:
        known, where = {}, paper.SPEEDUP_FROM
        if name == OURS and threads in paper.SPEEDUP[BASE]:
            known = {MEAN: paper.SPEEDUP[BASE][threads]}
            if threads == MANY:
                known, where = known | paper.SPEEDMALLOC, f"{paper.TABLE}, {paper.SPEEDUP_FROM}"
        limits = bounds(choice, name, BASE, threads) if threads == MANY else None
        value = speedup(choice, name, BASE, threads, SUPPORT)
        columns.append(Column(offloaded(name), value, known, where, bounds=limits))
    for hardware in accelerators(choice):
        known = {MEAN: paper.HARDWARE_OVER_JEMALLOC[hardware]} if threads == MANY else {}
        value = speedup(choice, ATOP[hardware], BASE, threads, hardware)
        columns.append(Column(accelerated(hardware), value, known, f"{paper.SPEEDUP_FROM}, a quotient"))
    return columns


def _runs_9(choice: Choice) -> list[Spec]:
    workloads = choice.of(MULTI)
    made = [spec for threads in reversed(THREADS) for spec in both(choice, workloads, threads)]
    made += [spec for threads in reversed(THREADS) for spec in of_accelerators(choice, workloads, threads)]
    return made + [spec for name in choice.allocators for spec in bound_runs(choice, name, workloads, MANY)]


def _means(choice: Choice, results: Results, panel: str, threads: int) -> list[Cell]:
    """SpeedMalloc over each by threads, as the text has it: the means alone."""
    columns = []
    names = choice.among(PEERS) if panel == OVER_EACH else list(choice.allocators)
    for name in names:
        mine = OURS if panel == OVER_EACH else name
        known = {MEAN: paper.SPEEDUP[name][threads]} if name in paper.SPEEDUP else {}
        columns.append(Column(name, speedup(choice, mine, name, threads, SUPPORT), known, paper.SPEEDUP_FROM))
    return _mean_row(choice, results, columns, panel, threads)


def _mean_row(choice: Choice, results: Results, columns: list[Column], panel: str, threads: int) -> list[Cell]:
    found = table(choice, results, columns, choice.of(MULTI), in_panel(panel), threads)
    return [replace(cell, row=str(threads)) for cell in found if cell.row == MEAN]


def _means_over_hardware(choice: Choice, results: Results, threads: int) -> list[Cell]:
    if OURS not in choice.allocators:
        return []
    known = {name: {MEAN: mean} for name, mean in paper.SPEEDUP_OVER_HARDWARE.items() if threads == MANY}
    columns = [
        Column(accelerated(name), over_accelerator(choice, name, threads), known.get(name, {}), paper.SPEEDUP_FROM)
        for name in accelerators(choice)
    ]
    return _mean_row(choice, results, columns, OVER_HARDWARE, threads)


def _cells_9(choice: Choice, results: Results) -> list[Cell]:
    found = []
    for threads in THREADS:
        found += table(choice, results, _over_base(choice, threads), choice.of(MULTI), in_row(str(threads)), threads)
    order = [*choice.of(MULTI), MEAN]
    found.sort(key=lambda cell: order.index(cell.panel))
    for panel in (OVER_EACH, OVER_ITSELF):
        found += [cell for threads in THREADS for cell in _means(choice, results, panel, threads)]
    return found + [cell for threads in THREADS for cell in _means_over_hardware(choice, results, threads)]


FIGURE_9 = Figure(
    "9",
    "Speedups by threads",
    "Cycles from start to end under jemalloc in software / under each, by threads. The paper's SpeedMalloc is a "
    f"design of its own after TCMalloc and mimalloc; beside it stands {offloaded(OURS)}, in software {ANNEX}. Table 3 "
    "has the paper's numbers by workload, for 16 threads; with fewer there is one seed. Mallacc has the 16 KiB at each "
    "core that the paper says, and no more of it: 862 entries, as fast as 16, atop a TCMalloc with markers.",
    _runs_9,
    _cells_9,
    drawn="lines",
    unit="speedup over jemalloc",
    pictured=lambda panel: panel not in (OVER_EACH, OVER_ITSELF, OVER_HARDWARE),
)


def _mean_of(known: dict[str, float], name: str) -> dict[str, float]:
    """As a column has it."""
    return {MEAN: known[name]} if name in known else {}


def _runs_8(choice: Choice) -> list[Spec]:
    workloads = choice.of(SINGLE)
    made = []
    for name in choice.allocators:
        for hardware in ("", SUPPORT):
            made += each(choice.maker(name, 1, hardware), workloads, choice.seeds[:1])
        made += bound_runs(choice, name, workloads, 1)
    return made + of_accelerators(choice, workloads, 1)


def _cells_8(choice: Choice, results: Results) -> list[Cell]:
    workloads = choice.of(SINGLE)
    columns = [Column(name, speedup(choice, name, BASE, 1)) for name in in_software(choice)]
    columns += [
        Column(
            offloaded(name),
            speedup(choice, name, BASE, 1, SUPPORT),
            {MEAN: paper.SINGLE[BASE]} if name == OURS else {},
            "6.2.1",
            bounds=bounds(choice, name, BASE, 1),
        )
        for name in choice.allocators
    ]
    beside = {
        hardware: Column(
            accelerated(hardware),
            speedup(choice, ATOP[hardware], BASE, 1, hardware),
            _mean_of(paper.SINGLE_HARDWARE_OVER_JEMALLOC, hardware),
            f"{paper.SPEEDUP_FROM}, a quotient",
        )
        for hardware in accelerators(choice)
    }
    found = table(choice, results, [*columns, *beside.values()], workloads, in_panel("speedup over jemalloc"), 1)
    redis = [name for name in workloads if name.startswith("redis")]
    if redis and MEMENTO in beside:
        known = {MEAN: paper.MEMENTO_OVER_JEMALLOC_REDIS}
        column = replace(beside[MEMENTO], paper=known, paper_from="6.2.1, footnote 13")
        found += table(choice, results, [column], redis, in_panel(REDIS), 1)[-1:]
    for panel, names in ((OVER_EACH, choice.among(PEERS)), (OVER_ITSELF, choice.allocators)):
        over_each = [
            Column(
                name,
                speedup(choice, OURS if panel == OVER_EACH else name, name, 1, SUPPORT),
                {MEAN: paper.SINGLE[name]} if name in paper.SINGLE else {},
                "6.2.1",
            )
            for name in names
        ]
        found += table(choice, results, over_each, workloads, in_panel(panel), 1)
    if OURS in choice.allocators:
        over_hardware = [
            Column(
                accelerated(name),
                over_accelerator(choice, name, 1),
                _mean_of(paper.SINGLE_OVER_HARDWARE, name),
                paper.SPEEDUP_FROM,
            )
            for name in accelerators(choice)
        ]
        found += table(choice, results, over_hardware, workloads, in_panel(OVER_HARDWARE), 1)
    return found


FIGURE_8 = Figure(
    "8",
    "Speedups with one thread",
    "Redis is redis-server as it replays an append-only file of that command and ends: its commands as they are, "
    "but no sockets, no client and no replies; its start is in it.",
    _runs_8,
    _cells_8,
    unit="speedup over jemalloc",
    pictured=lambda panel: panel == "speedup over jemalloc",
)
