"""Figure 17: from the allocator in software to the support core, one thing added at a time."""

import itertools
from collections.abc import Iterable

from annex_lab import stats
from annex_lab.sim.figures.cells import COUNT, SHARE, Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.speedmalloc import paper
from annex_lab.sim.figures.speedmalloc.common import (
    MANY,
    MULTI,
    OURS,
    OVER_EACH,
    PEERS,
    SUPPORT,
    bound_runs,
    bounds,
    in_software,
    share_of_instructions,
    speedup,
    table,
)
from annex_lab.sim.figures.values import AVERAGE, LEVEL, MEAN, Column, Missing, Results, in_panel

# Hardware: calls on an idle big core by queues in shared memory; by signals; by signals with queues in hardware; and
# these on a small core.
RUNGS = ("ic-malloc", "ic-malloc-signals", "ic-malloc-queues", SUPPORT)
# The paper adds the queues in its last step, which is SpeedMalloc; it does not say whether the steps before it have
# the small core.
ORDERS = {
    "workloads with the ladder in the paper's order, all on the big core": RUNGS[:-1],
    "workloads with the ladder in the paper's order, its last step on the small core": (*RUNGS[:2], SUPPORT),
}
SHARES = "allocator's share of instructions in software, per cent"
LADDER_OF = "tcmalloc"  # the paper's is relative to it


def runs_of(choice: Choice) -> list[Spec]:
    workloads, made = choice.of(MULTI), []
    for name in choice.allocators:
        for hardware in ("", SUPPORT, *RUNGS[:-1]):
            made += each(choice.maker(name, MANY, hardware), workloads, choice.seeds)
        made += bound_runs(choice, name, workloads, MANY)
    return made


def _rung(choice: Choice, name: str, hardware: str) -> Column:
    known: dict[str, float] = {}
    where = "6.4.2"
    if hardware == SUPPORT:
        known, where = paper.over(name), f"{paper.TABLE}, 6.2.1"
    elif name == LADDER_OF and hardware in paper.LADDER:
        known = {MEAN: paper.LADDER[hardware]}
    value = speedup(choice, name, name, MANY, hardware)
    return Column(hardware, value, known, where, bounds=bounds(choice, name, name, MANY))


def _in_order(values: Iterable[float]) -> bool:
    """Whether no step is one back, by more than counts."""
    return all(after >= before * (1 - LEVEL) for before, after in itertools.pairwise(values))


def _order(choice: Choice, results: Results, name: str, panel: str) -> Cell:
    """How many workloads have the order: by the mean of the seeds, and by each seed."""
    workloads = choice.of(MULTI)
    steps = [speedup(choice, name, name, MANY, hardware) for hardware in ORDERS[panel]]
    by_mean, by_seed = 0, dict.fromkeys(choice.seeds, 0)
    try:
        for workload in workloads:
            of_step = [[step(results, workload, seed) for seed in choice.seeds] for step in steps]
            by_mean += _in_order(map(stats.geometric_mean, of_step))
            for seed, values in zip(choice.seeds, zip(*of_step, strict=True), strict=True):
                by_seed[seed] += _in_order(values)
    except Missing as why:
        return Cell(panel, name, "workloads", None, note=str(why))
    least, most = min(by_seed.values()), max(by_seed.values())
    return Cell(panel, name, "workloads", by_mean, least, most, note=f"of {len(workloads)}", unit=COUNT)


def shares_of(choice: Choice, results: Results) -> list[Cell]:
    """The allocator's share of instructions in software, with Table 3's beside it."""
    found = []
    for name in in_software(choice):
        share = share_of_instructions(choice, name)
        column = Column(name, share, paper.SHARES, paper.TABLE, mean=AVERAGE, unit=SHARE)
        found += table(choice, results, [column], choice.of(MULTI), in_panel(SHARES))
    return found


def cells_of(choice: Choice, results: Results) -> list[Cell]:
    workloads, found = choice.of(MULTI), []
    for name in choice.allocators:
        columns = [_rung(choice, name, hardware) for hardware in RUNGS]
        found += table(choice, results, columns, workloads, in_panel(f"{name}, over itself in software"))
    if OURS in choice.allocators:
        columns = [
            Column(
                name,
                speedup(choice, OURS, name, MANY, SUPPORT),
                paper.over(name),
                f"{paper.TABLE}, 6.2.1",
                bounds=bounds(choice, OURS, name, MANY),
            )
            for name in choice.among(PEERS)
        ]
        found += table(choice, results, columns, workloads, in_panel(OVER_EACH))
    return found + [_order(choice, results, name, panel) for panel in ORDERS for name in choice.allocators]


def is_pictured(panel: str) -> bool:
    return panel not in ORDERS


FIGURE_17 = Figure(
    "17",
    "From an idle core to the support core",
    "ic-malloc: the calls run on an idle main core, asked through queues in shared memory; -signals: the same core, "
    "asked by the support core's signals; -queues: with its queues, too; speedmalloc: the small core. The paper says "
    "that IC-Malloc cannot outperform TCMalloc, and gives no number. The order is kept where no step, of those that "
    "the paper has, is more than 1 % back: of the seeds' means, and in parentheses of single seeds.",
    runs_of,
    cells_of,
    unit="speedup over software",
    pictured=is_pictured,
)
