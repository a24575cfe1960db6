"""Figure 4: what of malloc's time each step of the fast path takes, by leaving it out of the timing."""

from annex_lab.sim.figures.cells import SHARE, Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.mallacc import paper
from annex_lab.sim.figures.mallacc.common import LIMIT, MALLOC, MICRO, UNIT, maker, papers_own, saved, time
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.values import AVERAGE, Column, Results, cells, in_panel

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
        for series, (hardware, settings) in CASES.items():
            known = {AVERAGE: paper.FAST_PATH_STEPS} if series == "all" else {}
            gone = saved(time(choice, name, MALLOC, hardware, settings))
            column = Column(series, gone, known, paper.STEPS_FROM, AVERAGE, unit=SHARE)
            found += cells(results, column, choice.of(MICRO), choice.seeds, in_panel(name))
    return found


FIGURE_4 = Figure(
    "4",
    "The steps of the fast path",
    "What of the time in malloc is gone where a step is left out of the timing, and where all are. They do not add up, "
    "as they run beside each other. tp, tp-small and sized-deletes have fast paths alone; gauss never frees.",
    _runs,
    _cells,
    unit="share of the time in malloc",
)
