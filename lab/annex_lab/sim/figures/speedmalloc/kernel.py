"""2.1: what part of the allocator's time is the kernel's."""

from annex_lab.sim.figures import metrics
from annex_lab.sim.figures.cells import SHARE, Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.speedmalloc import paper
from annex_lab.sim.figures.speedmalloc.common import MANY, MULTI, SINGLE, in_software, seeds_of, table
from annex_lab.sim.figures.values import AVERAGE, Column, Results, in_panel, of, over

GROUPS = {f"{MANY} threads": (MULTI, MANY), "one thread": (SINGLE, 1)}
OF_ALLOCATOR, OF_PROGRAM = "of the allocator's calls", "of the whole program, busy cycles"


def _runs(choice: Choice) -> list[Spec]:
    return [
        spec
        for workloads, threads in GROUPS.values()
        for name in in_software(choice)
        for spec in each(choice.maker(name, threads), choice.of(workloads), seeds_of(choice, threads))
    ]


def _cells(choice: Choice, results: Results) -> list[Cell]:
    found = []
    for what, kernel, whole, known in (
        (OF_ALLOCATOR, metrics.CALL_KERNEL_CYCLES, metrics.CALL_CYCLES, {AVERAGE: paper.KERNEL_SHARE}),
        (OF_PROGRAM, metrics.KERNEL_CYCLES, "busy_all", {}),
    ):
        for called, (workloads, threads) in GROUPS.items():
            if not choice.of(workloads):
                continue
            columns = []
            for name in in_software(choice):
                run = choice.maker(name, threads)
                value = over(of(run, kernel), of(run, whole))
                columns.append(Column(name, value, known, paper.KERNEL_FROM, mean=AVERAGE, unit=SHARE))
            found += table(choice, results, columns, choice.of(workloads), in_panel(f"{what}, {called}"), threads)
    return found


SECTION_2_1 = Figure(
    "2.1",
    "The kernel's share of the allocator's time",
    "In software. Cycles in page faults and system calls, of all from entry to return of the allocator's calls; beside "
    "it the same of the whole program. Pages that the program touches first fault in the program, and are not the "
    "allocator's. The paper repeats a bound of others' measurements of long runs: so short ones as these have more of "
    "the start.",
    _runs,
    _cells,
    unit="share of cycles",
    kind="Section",
)
