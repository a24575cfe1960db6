"""What BatchIt measures, by the names of mimalloc-bench: ours that stands for it, and how many threads it has."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from annex_lab.sim.figures.figure import Choice
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.speedmalloc import common

MANY = 16  # the paper's machine has 72 cores, the largest of SpeedMalloc's 16


@dataclass(frozen=True)
class Benchmark:
    workload: str
    threads: int = MANY


SUITE = {
    "alloc-test1": Benchmark("alloc-test", 1),
    "alloc-testN": Benchmark("alloc-test"),
    "cache-scratch1": Benchmark("cache-scratch", 1),
    "cache-scratchN": Benchmark("cache-scratch"),
    "cfrac": Benchmark("cfrac", 1),
    "espresso": Benchmark("espresso", 1),
    "glibc-simple": Benchmark("glibc-simple", 1),
    "glibc-thread": Benchmark("glibc-thread"),
    "larsonN": Benchmark("larson"),
    "malloc-large": Benchmark("malloc-large", 1),
    "mleakN": Benchmark("mleak"),
    "mstressN": Benchmark("mstress"),
    "rptestN": Benchmark("rptest"),
    "sh6benchN": Benchmark("sh6bench"),
    "sh8benchN": Benchmark("sh8bench"),
    "xmalloc-testN": Benchmark("xmalloc"),
}
# As many producers as consumers, each on a core of its own; the most there is a machine for.
MESSAGES = {f"msgpass-{pairs}": Benchmark("msgpass", 2 * pairs) for pairs in (1, 2, 3, 4, 8, 16)}
MANY_MESSAGES = {f"msgpass-{pairs}": Benchmark("msgpass", 2 * pairs) for pairs in (20, 24, 32)}
ALL = SUITE | MESSAGES | MANY_MESSAGES

# Workload -> the scale of annex-lab sim; of those that SpeedMalloc has, as there.
SCALES = {
    **{name: common.SCALES[name] for name in ("alloc-test", "cache-scratch", "cfrac", "espresso", "larson", "mstress")},
    **{name: common.SCALES[name] for name in ("sh6bench", "sh8bench", "xmalloc")},
    "glibc-simple": 0.002,
    "glibc-thread": 0.001,
    # 20 blocks, some 13 of which live at last. From 40 on Annex moves pages, and QEMU with a reserved address space
    # leaves all but the first of where they were unreadable (move_pages in src/os/pages.cpp opens that one alone).
    "malloc-large": 0.01,
    "mleak": 0.01,
    "rptest": 0.02,  # 20 stretches of 125 to 500 blocks by a thread
    "msgpass": 0.002,
}
# Where a workload has more by itself than mimalloc-bench's program (workloads/sizes.csv).
SIZES = {**common.SIZES, "rptest": ("--window=1000",)}


def asked(choice: Choice, benchmarks: Iterable[str]) -> list[str]:
    """Those whose workload is asked for."""
    return [name for name in benchmarks if choice.of([ALL[name].workload])]


def maker(choice: Choice, allocator: str) -> Callable[[str, int], Spec]:
    """The run by benchmark and seed."""
    return lambda name, seed: choice.run(ALL[name].workload, allocator, ALL[name].threads, seed)
