"""Why ours gains less than the paper's: Figures 13 and 14 with one supposed cause removed at a time."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.mallacc import paper
from annex_lab.sim.figures.mallacc.common import CASES, MACRO, MICRO, TCMALLOC, WITH_SOFTWARE, maker
from annex_lab.sim.figures.mallacc.distribution import ENDLESS, FUNCTIONS, SLOW, START, cycles_within
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.values import MEAN, Column, Results, Value, cells, in_panel, less, over

FULL = "gperftools-marked-full"  # peers/full_gperftools.py
LONGER = 3  # times the work
NARROW = ("core.decode=2", "core.width=2", "core.retire_width=2")  # half of haswell-1's
KNOWN = {
    ("malloc", "32 entries"): paper.MALLOC,
    ("malloc and free", "32 entries"): paper.ALLOCATOR,
    ("malloc and free", "limit"): paper.ALLOCATOR_LIMIT,
}
SUMMARY = "geometric means, by what is removed"


@dataclass(frozen=True)
class Experiment:
    """What a number of the distance is made of."""

    removed: str
    allocator: str = TCMALLOC
    below: float = ENDLESS  # only calls of less cycles
    later: bool = False  # only what longer runs have beyond the others
    settings: tuple[str, ...] = ()
    workloads: tuple[str, ...] = tuple(MACRO)


EXPERIMENTS = (
    Experiment("nothing: as in Figures 13 and 14"),
    Experiment("the allocator's start", below=START),
    Experiment("the first third of longer runs", later=True),
    Experiment("slow calls", below=SLOW),
    Experiment("both: later calls, no slow ones", below=SLOW, later=True),
    Experiment("calls of 100 cycles and more", below=paper.SHORT),
    Experiment("start, and the fast path of 2017", allocator=FULL, below=START),
    Experiment("start, and half of the core's width", below=START, settings=NARROW),
    Experiment("start, and programs: microbenchmarks", below=START, workloads=tuple(MICRO)),
)


def _longer(choice: Choice) -> Choice:
    return replace(choice, scales={name: LONGER * scale for name, scale in choice.scales.items()})


def _makers(choice: Choice, of: Experiment) -> dict[str, Callable[[str, int], Spec]]:
    return {
        case: maker(choice, of.allocator, hardware, (*settings, *of.settings))
        for case, (hardware, settings) in WITH_SOFTWARE.items()
    }


def _runs(choice: Choice) -> list[Spec]:
    made = []
    for of in EXPERIMENTS:
        for length in (choice, _longer(choice)) if of.later else (choice,):
            for make in _makers(length, of).values():
                made += each(make, choice.of(of.workloads), choice.seeds[:1])
    return list(dict.fromkeys(made))


def _time(choice: Choice, of: Experiment, case: str, functions: tuple[str, ...]) -> Value:
    here = cycles_within(_makers(choice, of)[case], functions, 0, of.below)
    if not of.later:
        return here
    return less(cycles_within(_makers(_longer(choice), of)[case], functions, 0, of.below), here)


def _cells(choice: Choice, results: Results) -> list[Cell]:
    means, by_workload = [], []
    for of in EXPERIMENTS:
        workloads = choice.of(of.workloads)
        for (what, functions), case in itertools.product(FUNCTIONS.items(), CASES) if workloads else ():
            value = over(_time(choice, of, case, functions), _time(choice, of, "software", functions))
            known = {MEAN: KNOWN[what, case]} if (what, case) in KNOWN else {}
            column = Column(f"{what}, {case}", value, known, paper.FROM)
            found = cells(results, column, workloads, choice.seeds[:1], in_panel(of.removed))
            by_workload += found
            means.append(replace(found[-1], panel=SUMMARY, row=of.removed))
    return [*means, *by_workload]


DISTANCE = Figure(
    "distance",
    "The distance to the paper's gains, by experiment",
    "Cycles over those of the same allocator in software, without the kernel's; a row has what is supposed to keep "
    "ours from the paper's gain removed from both. First seed. The start: calls of "
    f"{START} cycles and more, one or two a run. The first third: runs of {LONGER} times the work, less runs of once "
    f"the work. Slow: {SLOW} cycles and more. The fast path of 2017: gperftools-marked-full, whose mallocs all go out "
    "of line.",
    _runs,
    _cells,
    unit="over software",
    pictured=lambda panel: panel == SUMMARY,
    kind="",
)
