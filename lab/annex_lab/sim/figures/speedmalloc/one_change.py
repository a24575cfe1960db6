"""Beside Table 3: what becomes of its speedups where one thing is changed, of the machine or of an allocator.

A supposed reason for an order of allocators is a claim of what happens without it. So each is taken away, and the rest
of the run stays as it is: what does not move the speedup is not the reason.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.speedmalloc.common import MANY, MULTI, PEERS, table
from annex_lab.sim.figures.values import MEAN, Column, Results, Value, in_row, of, over

BASE, *OTHERS = PEERS
KERNEL_TIMES_5 = "lab/campaign/sim/machines/kernel-times-5.toml"


@dataclass(frozen=True)
class Change:
    settings: tuple[str, ...] = ()
    machine: str = ""  # instead of the paper's
    allocators: dict[str, str] = field(default_factory=dict)  # that stand in the place of others

    def maker(self, choice: Choice, allocator: str) -> Callable[[str, int], Spec]:
        def make(workload: str, seed: int) -> Spec:
            spec = choice.run(workload, self.allocators.get(allocator, allocator), MANY, seed, settings=self.settings)
            return replace(spec, machine=self.machine) if self.machine else spec

        return make


CHANGES = {
    # As fast as from the last level: what is left is the look-up there.
    "hand-overs at the look-up's price": Change(("coherence.transfer=0", "coherence.invalidate=0")),
    # With the look-up, of 24 cycles: 88 in place of 44, and 72 in place of 36 until all other copies are gone.
    "hand-overs twice as dear": Change(("coherence.transfer=64", "coherence.invalidate=48")),
    "the kernel's times by five": Change(machine=KERNEL_TIMES_5),
    # At no cost: each line of fresh memory comes from DRAM to who touches it.
    "pages cleared past the caches": Change(("pages.clearing=none",)),
    "four memory channels": Change(("dram.channels=4",)),
    "the smaller core": Change(machine=f"speedmalloc-{MANY}-armv7"),
    "jemalloc with one arena": Change(allocators={"jemalloc": "jemalloc-1-arena"}),
    "jemalloc that gives no pages back": Change(allocators={"jemalloc": "jemalloc-no-purge"}),
    "gperftools' TCMalloc": Change(allocators={"tcmalloc": "gperftools"}),
    "mimalloc 2": Change(allocators={"mimalloc3": "mimalloc2"}),
    "mimalloc 3 that gives no pages back": Change(allocators={"mimalloc3": "mimalloc3-no-purge"}),
}
AS_IT_IS = Change()


def _concerned(choice: Choice, change: Change) -> list[str]:
    """Whose speedup over jemalloc it may move."""
    whose = change.allocators.keys()
    return [name for name in choice.among(OTHERS) if not whose or whose & {BASE, name}]


def _runs(choice: Choice) -> list[Spec]:
    made = []
    for change in (AS_IT_IS, *CHANGES.values()):
        if others := _concerned(choice, change):
            for who in (BASE, *others):
                made += each(change.maker(choice, who), choice.of(MULTI), choice.seeds)
    return made


def _speedup(choice: Choice, name: str, change: Change) -> Value:
    return over(of(change.maker(choice, BASE), "cycles"), of(change.maker(choice, name), "cycles"))


def _cells(choice: Choice, results: Results) -> list[Cell]:
    found = []
    for what, change in CHANGES.items():
        columns = [
            Column(name, over(_speedup(choice, name, change), _speedup(choice, name, AS_IT_IS)))
            for name in _concerned(choice, change)
        ]
        found += table(choice, results, columns, choice.of(MULTI), in_row(what))
    return found


ONE_CHANGE = Figure(
    "one-change",
    "Table 3 with one thing changed at a time",
    "16 threads. By how much a change of the machine, or of one allocator, multiplies TCMalloc's and mimalloc 3's "
    "speedup over jemalloc: with 1 it does nothing to it. The kernel's times by five are all that system calls and "
    "page faults take; the smaller core is the one that the paper may mean.",
    _runs,
    _cells,
    unit="speedup over jemalloc, with over without",
    pictured=lambda panel: panel == MEAN,
    kind="",
)
