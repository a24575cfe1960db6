"""Figures 14 to 16: the support core's L1D by size; the main cores' L2, parted by ways, and by size."""

from collections.abc import Callable

from annex_lab.sim.figures import metrics
from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.speedmalloc import paper
from annex_lab.sim.figures.speedmalloc.common import ANNEX, MANY, MULTI, SUPPORT, TODAY, offloaded, table
from annex_lab.sim.figures.values import MEAN, Column, Results, Value, in_panel, in_row, of, over

WORKLOAD = "sh6bench"
L1D_KIB = (1, 2, 4, 8, 16)

UNDER = ("mimalloc3", "snmalloc", ANNEX)  # the paper's is of mimalloc
PARTED = ("tcmalloc", *UNDER)
L2_WAYS, ALLOCATOR_WAYS = 8, (1, 2, 4)
L2_KIB = (128, 256, 512, 1024)
STANDARD = 256  # the machine's own


def _l1d(choice: Choice, name: str, kib: int):
    """16 KiB is the hardware's own size: that run is other figures', too."""
    settings = () if kib == L1D_KIB[-1] else (f"support_core.l1d.bytes={1024 * kib}",)
    return choice.maker(name, MANY, SUPPORT, settings)


def _runs_14(choice: Choice) -> list[Spec]:
    workloads = choice.of([WORKLOAD])
    return [
        spec
        for name in choice.allocators
        for kib in L1D_KIB
        for spec in each(_l1d(choice, name, kib), workloads, choice.seeds)
    ]


def _power(run: Callable[[str, int], Spec]) -> Value:
    """Energy a cycle: what matters is its ratio."""
    return over(of(run, metrics.ENERGY), of(run, "cycles"))


def _by_size(
    choice: Choice, results: Results, what: str, measure: Callable[..., Value], known: dict[int, float]
) -> list[Cell]:
    found = []
    for kib in L1D_KIB:
        beside = {WORKLOAD: round(known[kib], 3)} if kib in known else {}
        columns = []
        for name in choice.allocators:
            value = over(measure(_l1d(choice, name, kib)), measure(_l1d(choice, name, L1D_KIB[0])))
            columns.append(Column(offloaded(name), value, beside, "6.3"))
        found += table(choice, results, columns, [WORKLOAD], in_row(f"{kib} KiB", what))[::2]  # of one no mean
    return found


def _cells_14(choice: Choice, results: Results) -> list[Cell]:
    if not choice.of([WORKLOAD]):
        return []
    times = {kib: 1 / speedup for kib, speedup in paper.L1D_SPEEDUP.items()}
    found = _by_size(choice, results, "time", lambda run: of(run, "cycles"), times)
    found += _by_size(choice, results, "power", _power, paper.L1D_POWER)
    return found + _by_size(choice, results, "energy", lambda run: of(run, metrics.ENERGY), {})


FIGURE_14 = Figure(
    "14",
    "The support core's L1 data cache",
    "sh6bench with 16 threads, each allocator on the support core: time, and the estimate of power and energy.",
    _runs_14,
    _cells_14,
    drawn="lines",
    unit="over that with 1 KiB",
)


def _parted(choice: Choice, name: str, ways: int):
    return choice.maker(name, MANY, "", (f"l2.allocator_ways={ways}",))


def _runs_15(choice: Choice) -> list[Spec]:
    made = []
    for name in choice.among(PARTED):
        made += each(choice.maker(name, MANY), choice.of(MULTI), choice.seeds)
        for ways in ALLOCATOR_WAYS:
            made += each(_parted(choice, name, ways), choice.of(MULTI), choice.seeds)
    return made


def _cells_15(choice: Choice, results: Results) -> list[Cell]:
    found = []
    for name in choice.among(PARTED):
        software = of(choice.maker(name, MANY), "cycles")
        columns = [
            Column(f"{L2_WAYS - ways}-{ways}", over(software, of(_parted(choice, name, ways), "cycles")))
            for ways in ALLOCATOR_WAYS
        ]
        found += table(choice, results, columns, choice.of(MULTI), in_panel(f"{name}: speedup over no partition"))
    return found


FIGURE_15 = Figure(
    "15",
    "A partition of the cache",
    "Allocators in software with 16 threads; of the eight ways of each main core's L2, the last 1, 2 or 4 are filled "
    "by the allocator's code alone, and it fills no others. The paper doesn't say of which allocator its figure is; "
    "its text says that a partition gains in some workloads, and makes others 7 to 12 % slower.",
    _runs_15,
    _cells_15,
    unit="speedup over no partition",
    allocators=TODAY,
)


def _l2(choice: Choice, name: str, kib: int):
    return choice.maker(name, MANY, "", () if kib == STANDARD else (f"l2.bytes={1024 * kib}",))


def _runs_16(choice: Choice) -> list[Spec]:
    made = []
    for name in choice.among(UNDER):
        for kib in L2_KIB:
            made += each(_l2(choice, name, kib), choice.of(MULTI), choice.seeds)
    return made


def _cells_16(choice: Choice, results: Results) -> list[Cell]:
    found = []
    for name in choice.among(UNDER):
        least = of(_l2(choice, name, L2_KIB[0]), "cycles")
        known = paper.L2_SPEEDUP if name == UNDER[0] else {}
        columns = [
            Column(
                f"{kib} KiB",
                over(least, of(_l2(choice, name, kib), "cycles")),
                {MEAN: known[kib]} if kib in known else {},
                "6.4.1",
            )
            for kib in L2_KIB
        ]
        panel = f"{name}: speedup over {L2_KIB[0]} KiB"
        found += table(choice, results, columns, choice.of(MULTI), in_panel(panel))
    return found


FIGURE_16 = Figure(
    "16",
    "The main cores' L2",
    "Allocators in software with 16 threads; the number of ways and the latency stay as they are, as far as the paper "
    "says the same of its own, which is of mimalloc.",
    _runs_16,
    _cells_16,
    unit=f"speedup over {L2_KIB[0]} KiB",
    allocators=TODAY,
)
