"""A campaign's runs with 16 threads beside SpeedMalloc's Table 3: speedups over jemalloc, and which allocator is first.

The paper's figures are of gem5, AArch64 and inputs of its own, and of versions of 2023 or 2024, so what is compared is
the order of the allocators. A second table says where the time of all cores went; docs/simulator-table3.md reads both
and says why the order differs where it does.
"""

import itertools
from dataclasses import dataclass

from annex_lab import stats
from annex_lab.report import table_head, table_row
from annex_lab.sim.campaign import AUTO, Campaign, Run, mean_of

THREADS = 16
PLACES = ((AUTO, THREADS), ("speedmalloc-16", THREADS))
BASE = "jemalloc"
ALLOCATORS = ("tcmalloc", "mimalloc3")
# Wall time of jemalloc / of TCMalloc and of mimalloc (SpeedMalloc, Table 3).
PAPER = {
    "larson": (2.71, 2.17),
    "xmalloc": (1.06, 1.09),
    "cache-scratch": (1.49, 1.54),
    "sh6bench": (1.63, 1.45),
    "sh8bench": (1.31, 1.39),
    "mstress": (1.65, 1.62),
    "alloc-test": (1.04, 1.40),
    "gap-bfs": (2.55, 2.50),
    "gap-bc": (1.18, 1.16),
    "nas-dc": (1.10, 1.39),
}
# Where time goes: columns of cycles, each of some causes in the allocator's code or in the program's.
SYNCHRONIZATION = ("atomic", "coherence")
CACHES = ("l2", "llc", "dram", "tlb")
KERNEL = ("page_fault", "system_call")
PARTS = {
    "allocator": ("allocator", ("base", "branch", "fetch", "l1", *CACHES)),
    "its synchronization": ("allocator", SYNCHRONIZATION),
    "program": ("program", ("base", "branch", "fetch", "l1")),
    "its caches": ("program", CACHES),
    "its shared lines": ("program", SYNCHRONIZATION),
}
LEVEL = 0.03  # allocators that are no further apart than this are called level


@dataclass(frozen=True)
class Row:
    workload: str
    paper: tuple[float, ...]  # by ALLOCATORS
    here: tuple[float, ...]

    @property
    def flips(self) -> list[str]:
        """Pairs that the paper and the simulation put in opposite orders, neither calling them level."""
        found = []
        for one, other in itertools.combinations((BASE, *ALLOCATORS), 2):
            paper, here = (_ratio(speedups, one, other) for speedups in (self.paper, self.here))
            if all(abs(ratio - 1) > LEVEL for ratio in (paper, here)) and (paper > 1) != (here > 1):
                found.append(f"{one} and {other}")
        return found

    def level(self, pair: str) -> bool:
        """Whether the simulation has them no further apart than counts; the pair as in `flips`."""
        return abs(_ratio(self.here, *pair.split(" and ")) - 1) <= LEVEL


def _ratio(speedups: tuple[float, ...], one: str, other: str) -> float:
    by_name = dict(zip((BASE, *ALLOCATORS), (1.0, *speedups), strict=True))
    return by_name[one] / by_name[other]


def order(speedups: tuple[float, ...]) -> str:
    """The fastest first; = between neighbours that are level."""
    ranked = sorted(zip((1.0, *speedups), (BASE, *ALLOCATORS), strict=True), key=lambda pair: -pair[0])
    text = ranked[0][1]
    for (faster, _), (slower, name) in itertools.pairwise(ranked):
        text += f" {'=' if faster / slower - 1 <= LEVEL else '>'} {name}"
    return text


def rows(campaign: Campaign) -> list[Row]:
    """Of the workloads that ran under all three, with 16 threads on a core each."""
    for place in PLACES:
        found = []
        for workload, paper in PAPER.items():
            ratios = [campaign.ratios(workload, name, BASE, place, "cycles") for name in ALLOCATORS]
            if all(ratios):
                here = tuple(1 / mean_of(ratio.values()).mean for ratio in ratios)
                found.append(Row(workload, paper, here))
        if found:
            return found
    return []


def lines(found: list[Row]) -> list[str]:
    text = [
        "## Beside SpeedMalloc's Table 3",
        "",
        f"Speedup over {BASE} with {THREADS} threads, the paper's (gem5, AArch64, its inputs) and simulated here. "
        f"Order: the fastest first, = where they are within {100 * LEVEL:.0f} %. Opposite: pairs that the two put in "
        "opposite orders.",
        "",
        *table_head(
            [
                "",
                *(f"{name}, {whose}" for name in ALLOCATORS for whose in ("paper", "here")),
                "order, paper",
                "order, here",
                "opposite",
            ]
        ),
    ]
    for row in found:
        cells = [f"{value:.2f}" for pair in zip(row.paper, row.here, strict=True) for value in pair]
        text.append(table_row([row.workload, *cells, order(row.paper), order(row.here), "; ".join(row.flips) or "-"]))
    means = _means(found)
    return [*text, table_row(["**geometric mean**", *means, "", "", ""])]


def _means(found: list[Row]) -> list[str]:
    return [
        f"**{stats.geometric_mean([getattr(row, whose)[i] for row in found]):.2f}**"
        for i in range(len(ALLOCATORS))
        for whose in ("paper", "here")
    ]


def _times(run: Run) -> list[float]:
    """Core cycles by PARTS, the kernel's, and idle ones."""
    causes = run.cycles_by_cause
    both = [sum(causes[origin].get(cause, 0) for origin in causes for cause in group) for group in (KERNEL, ("idle",))]
    own = [sum(causes[origin].get(cause, 0) for cause in group) for origin, group in PARTS.values()]
    # A core that is done before the slowest is idle, too.
    return [*own, both[0], both[1] + THREADS * run.cycles - sum(own) - sum(both)]


def where_time_went(campaign: Campaign, found: list[Row]) -> list[str]:
    text = [
        "### Where the time of the 16 cores went",
        "",
        f"Millions of core cycles: {THREADS} times the cycles from start to end. Synchronization: locked instructions, "
        "and waiting for lines that other cores have; shared lines: the same in the program's own code, where it waits "
        "for lines that allocators put two threads' blocks into, or that threads pass on. Caches: beyond the L1, and "
        "TLBs. Locked: locked instructions of the allocator's code, a call of it. Futex calls: the whole program's.",
        "",
        *table_head(["", "", *PARTS, "kernel", "idle", "locked", "futex calls", "million instructions", "peak, MiB"]),
    ]
    place = next(place for place in PLACES if campaign.get(found[0].workload, BASE, place))
    for row in found:
        for name in campaign.allocators:
            runs = campaign.get(row.workload, name, place)
            if not runs:
                continue
            run = runs[0]
            cells = [f"{value / 1e6:,.0f}" for value in _times(run)]
            cells += [f"{run.allocator_atomics / max(run.allocator_calls, 1):.2f}", f"{run.futex_calls:,}"]
            cells += [f"{run.instructions / 1e6:,.0f}", f"{run.peak_bytes / 2**20:,.0f}"]
            text.append(table_row([row.workload, name, *cells]))
    return text
