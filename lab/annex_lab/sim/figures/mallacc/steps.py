"""Figure 4: what of the fast path's time each of its steps takes, by leaving it out of the timing."""

from annex_lab.sim.figures.cells import SHARE, Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.mallacc import paper
from annex_lab.sim.figures.mallacc.common import LIMIT, MICRO, UNIT, maker, papers_own, saved
from annex_lab.sim.figures.mallacc.distribution import FUNCTIONS, SLOW, cycles_within
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.values import AVERAGE, Column, Results, cells, in_panel, over

STEPS = ("size_class", "sampling", "pop", "push")
LEFT_OUT = {"size class": ("size_class",), "sampling": ("sampling",), "push and pop": ("pop", "push")}


def only(*free: str) -> tuple[str, ...]:
    """The settings with which these steps cost nothing, and software does the others."""
    return tuple(f"mallacc.{step}={'free' if step in free else 'software'}" for step in STEPS)


CASES = {name: (UNIT, only(*steps)) for name, steps in LEFT_OUT.items()} | {"all": (LIMIT, ())}


def _runs(choice: Choice) -> list[Spec]:
    made = []
    for name in papers_own(choice):
        for hardware, settings in (("", ()), *CASES.values()):
            made += each(maker(choice, name, hardware, settings), choice.of(MICRO), choice.seeds)
    return made


def _cells(choice: Choice, results: Results) -> list[Cell]:
    found = []
    for name in papers_own(choice):
        for what, functions in FUNCTIONS.items():
            software = cycles_within(maker(choice, name), functions, 0, SLOW)
            for series, (hardware, settings) in CASES.items():
                left = cycles_within(maker(choice, name, hardware, settings), functions, 0, SLOW)
                known = {AVERAGE: paper.FAST_PATH_STEPS} if series == "all" else {}
                column = Column(series, saved(over(left, software)), known, paper.STEPS_FROM, AVERAGE, unit=SHARE)
                found += cells(results, column, choice.of(MICRO), choice.seeds, in_panel(f"{name}: {what}"))
    return found


FIGURE_4 = Figure(
    "4",
    "The steps of the fast path",
    f"What of the time in calls below {SLOW} cycles is gone where a step is left out of the timing, and where all are. "
    "They do not add up, as they run beside each other; and where a free's step is left out, the malloc after it may "
    "wait for what the free waited for, so that malloc alone takes longer. gauss never frees.",
    _runs,
    _cells,
    unit="share of the time in calls",
)
