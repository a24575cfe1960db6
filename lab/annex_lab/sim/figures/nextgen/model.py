"""The model of the paper's 4.1: how many misses a call must save before a core for the allocator pays.

    misses to save      cycles of a hand-over / cycles a miss, for each call

The paper takes what a miss costs from two allocators: (cycles under glibc - under mimalloc) / (misses under glibc -
under mimalloc). That has no meaning where the faster of the two has more misses, as mimalloc does here; the simulator
says for each cycle what it was lost to, so a miss costs what was lost to memory and page walks, over misses.

Misses are those of the last level and of the TLBs, of loads and stores.
"""

from annex_lab.sim.figures import metrics
from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.nextgen import paper
from annex_lab.sim.figures.nextgen.tables import HANDSHAKE, MIMALLOC, TWO_CORES, XALAN, one
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.values import Column, Results, Value, less, of, over

OWN = "annex"  # the same allocator where no call is handed over


def _runs(choice: Choice) -> list[Spec]:
    workloads = choice.of([XALAN])
    made = each(choice.maker(MIMALLOC, 1), workloads, choice.seeds)
    return made + [
        spec for name in (HANDSHAKE, OWN) for spec in each(choice.maker(name, TWO_CORES), workloads, choice.seeds)
    ]


def _misses(choice: Choice) -> Value:
    """Of mimalloc's run."""
    kinds = [
        of(choice.maker(MIMALLOC, 1), metric)
        for metric in (metrics.LLC_LOAD_MISSES, metrics.LLC_STORE_MISSES, metrics.PAGE_WALKS)
    ]
    return lambda results, workload, seed: sum(kind(results, workload, seed) for kind in kinds)


def _paper_misses(name: str) -> float:
    return sum(paper.XALAN[name][event] for event in paper.MISSES)


def _cells(choice: Choice, results: Results) -> list[Cell]:
    calls = of(choice.maker(MIMALLOC, 1), metrics.CALLS)
    a_miss = over(of(choice.maker(MIMALLOC, 1), metrics.MISS_STALLS), _misses(choice))
    hand_over = over(
        less(of(choice.maker(HANDSHAKE, TWO_CORES), "cycles"), of(choice.maker(OWN, TWO_CORES), "cycles")),
        of(choice.maker(HANDSHAKE, TWO_CORES), metrics.CALLS),
    )
    rows = {
        "cycles of a hand-over, a call": (hand_over, paper.HAND_OVER),
        "cycles a miss": (a_miss, paper.MISS_CYCLES),
        "misses to save, a call": (over(hand_over, a_miss), paper.MISSES_TO_SAVE),
        "misses that there are under mimalloc, a call": (
            over(_misses(choice), calls),
            round(_paper_misses(MIMALLOC) / paper.CALLS, 3),
        ),
    }
    found = []
    for row, (value, known) in rows.items():
        column = Column("xalan", value, {XALAN: known}, "4.1, Table 1")
        found += one(choice, results, column, XALAN, row, "a core for the allocator alone, when it pays")
    return found


MODEL = Figure(
    "4.1",
    "When a core for the allocator pays",
    "xalan. The paper counts four atomic operations of 67 cycles a call for the hand-over; ours is what the offload "
    "flavour takes more with that protocol than Annex on the program's core, a call. What a miss costs under mimalloc "
    "is what was lost to memory and page walks, over misses; the paper divides glibc's and mimalloc's difference in "
    "cycles by that in misses. Where more misses would have to be saved than there are, it cannot pay by misses alone.",
    _runs,
    _cells,
    unit="cycles, or misses a call",
    kind="Section",
)
