"""Figures 10 to 12, with 16 threads: L2 miss cycles, cycles of locked instructions, memory."""

from annex_lab.sim.figures.cells import RATIO, SHARE, Cell
from annex_lab.sim.figures.figure import Choice, Figure
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.speedmalloc import paper
from annex_lab.sim.figures.speedmalloc.common import (
    IN_SOFTWARE,
    MANY,
    MULTI,
    OURS,
    PEERS,
    SUPPORT,
    both,
    in_software,
    offloaded,
    table,
)
from annex_lab.sim.figures.values import AVERAGE, MEAN, Column, Results, Value, in_panel, less, of, over

BASE = "jemalloc"


def _runs(choice: Choice) -> list[Spec]:
    return both(choice, choice.of(MULTI), MANY)


def _of(choice: Choice, allocator: str, metric: str, hardware: str = "") -> Value:
    return of(choice.maker(allocator, MANY, hardware), metric)


def _by_series(choice: Choice, metric: str, whole: str) -> list[Column]:
    """Each in software and offloaded, over jemalloc's in software, or a part of the whole there."""
    base, part = _of(choice, BASE, whole), metric != whole
    columns = []
    for hardware, names in (("", in_software(choice)), (SUPPORT, choice.allocators)):
        for name in names:
            series = offloaded(name) if hardware else name
            value = over(_of(choice, name, metric, hardware), base)
            columns.append(Column(series, value, mean=AVERAGE if part else MEAN, unit=SHARE if part else RATIO))
    return columns


def _remaining(choice: Choice, mine: str, name: str, metric: str, known: dict[str, float]) -> Column:
    """What an offloaded allocator has / what another has in software."""
    value = over(_of(choice, mine, metric, SUPPORT), _of(choice, name, metric))
    return Column(f"{offloaded(mine)} / {name}", value, {MEAN: known[name]} if name in known else {}, "6.2.2")


def pairs(choice: Choice) -> list[tuple[str, str]]:
    """Who is set against whom: ours offloaded against each peer, and each offloaded against itself."""
    ours = [(OURS, name) for name in choice.among(PEERS)] if OURS in choice.allocators else []
    return ours + [(name, IN_SOFTWARE.get(name, name)) for name in choice.allocators]


def _cells_10(choice: Choice, results: Results) -> list[Cell]:
    workloads = choice.of(MULTI)
    found = []
    for which in ("main", "all"):
        metric, panel = f"l2_stalls_{which}", f"{which} cores, over jemalloc's"
        found += table(choice, results, _by_series(choice, metric, metric), workloads, in_panel(panel))
    for which in ("main", "all"):
        columns = [
            _remaining(choice, mine, name, f"l2_stalls_{which}", paper.L2_REMAINS) for mine, name in pairs(choice)
        ]
        found += table(choice, results, columns, workloads, in_panel(f"what remains, {which} cores"))
    shares = [
        Column(
            name,
            over(_of(choice, name, "l2_stalls_main"), _of(choice, name, "busy_main")),
            {MEAN: paper.L2_SHARE[name]} if name in paper.L2_SHARE else {},
            "6.2.2",
            unit=SHARE,
        )
        for name in in_software(choice)
    ]
    return found + table(choice, results, shares, workloads, in_panel("share of busy cycles, in software"))


FIGURE_10 = Figure(
    "10",
    "L2 miss cycles",
    "Cycles that cores waited for misses of the L2, each counted once. Main cores are those that threads run on. All "
    "cores have the support core, too, which has no L2: what counts there are misses of its L1.",
    _runs,
    _cells_10,
    unit="L2 miss cycles over jemalloc's",
    pictured=lambda panel: panel.endswith("over jemalloc's"),
)


def _saved(choice: Choice, mine: str, name: str, which: str) -> Column:
    gone = less(_of(choice, name, f"atomics_{which}"), _of(choice, mine, f"atomics_{which}", SUPPORT))
    return Column(
        f"{offloaded(mine)}, of {name}'s",
        over(gone, _of(choice, name, f"busy_{which}")),
        {AVERAGE: paper.ATOMICS_SAVED[name]} if name in paper.ATOMICS_SAVED else {},
        "6.2.2",
        mean=AVERAGE,
        unit=SHARE,
    )


def _cells_11(choice: Choice, results: Results) -> list[Cell]:
    workloads = choice.of(MULTI)
    found = []
    for which in ("main", "all"):
        columns = _by_series(choice, f"atomics_{which}", f"busy_{which}")
        panel = f"{which} cores, of jemalloc's busy cycles"
        found += table(choice, results, columns, workloads, in_panel(panel))
    for which in ("main", "all"):
        columns = [_saved(choice, mine, name, which) for mine, name in pairs(choice)]
        panel = f"saved, of busy cycles in software, {which} cores"
        found += table(choice, results, columns, workloads, in_panel(panel))
    return found


FIGURE_11 = Figure(
    "11",
    "Cycles of locked instructions",
    "Of the whole program, its own locked instructions among them, over jemalloc's busy cycles. Means are arithmetic. "
    "What is saved is what is fewer than in software, over the busy cycles there.",
    _runs,
    _cells_11,
    unit="of jemalloc's busy cycles",
    pictured=lambda panel: panel.endswith("jemalloc's busy cycles"),
)


def _cells_12(choice: Choice, results: Results) -> list[Cell]:
    workloads = choice.of(MULTI)
    found = []
    for which in ("peak", "average"):
        metric, panel = f"{which}_resident", f"{which}, over jemalloc's"
        found += table(choice, results, _by_series(choice, metric, metric), workloads, in_panel(panel))
    for which in ("peak", "average"):
        known = paper.MEMORY if which == "peak" else {}
        columns = [_remaining(choice, mine, name, f"{which}_resident", known) for mine, name in pairs(choice)]
        found += table(choice, results, columns, workloads, in_panel(f"offloaded / software, {which}"))
    return found


FIGURE_12 = Figure(
    "12",
    "Memory",
    "Resident pages of the whole process, at their peak and on average over time.",
    _runs,
    _cells_12,
    unit="resident bytes over jemalloc's",
    pictured=lambda panel: panel.endswith("over jemalloc's"),
)
