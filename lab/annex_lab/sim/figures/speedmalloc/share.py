"""Not in the paper: what a support core gains by the share of allocation, where calls have other work between them."""

from annex_lab.programs import spaced
from annex_lab.sim.figures.cells import SHARE, Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.speedmalloc.common import (
    MANY,
    SPACED,
    SUPPORT,
    bound_runs,
    bounds,
    in_software,
    share_of_instructions,
    speedup,
    table,
)
from annex_lab.sim.figures.speedmalloc.ladder import SHARES
from annex_lab.sim.figures.values import AVERAGE, MEAN, Column, Results, in_row

BIG = "ic-malloc-queues"
ON = {SUPPORT: "on the support core", BIG: "on an idle main core with its queues"}


def _runs(choice: Choice) -> list[Spec]:
    made = []
    for name in choice.allocators:
        for hardware in ("", *ON):
            made += each(choice.maker(name, MANY, hardware), SPACED, choice.seeds)
        made += bound_runs(choice, name, SPACED, MANY)
    return made


def _by_steps(choice: Choice, results: Results, column: Column, panel: str) -> list[Cell]:
    made = []
    for steps in spaced.STEPS:
        made += table(choice, results, [column], [spaced.name_of(steps)], in_row(str(steps), panel))[:1]
    return made


def _cells(choice: Choice, results: Results) -> list[Cell]:
    found = []
    for name in choice.allocators:
        if name in in_software(choice):
            share = Column(name, share_of_instructions(choice, name), mean=AVERAGE, unit=SHARE)
            found += _by_steps(choice, results, share, SHARES)
        for hardware, what in ON.items():
            value = speedup(choice, name, name, MANY, hardware)
            column = Column(name, value, mean=MEAN, bounds=bounds(choice, name, name, MANY))
            found += _by_steps(choice, results, column, f"speedup {what}, over itself in software")
    return found


SHARE_OF_ALLOCATION = Figure(
    "share",
    "What the share of allocation decides",
    "glibc-thread with 16 threads and blocks of up to 1 KiB, with steps of other work, of some ten instructions each, "
    "between two replacements: rows are those steps. SpeedMalloc's Table 3 has shares of 0.4 to 7 per cent.",
    _runs,
    _cells,
    drawn="lines",
    unit="speedup, or share",
    kind="",
)
