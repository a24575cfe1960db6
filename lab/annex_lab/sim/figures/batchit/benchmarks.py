"""What BatchIt measures, by the names of mimalloc-bench: ours that stands for it, and how many threads it has."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from annex_lab.sim.figures.figure import Choice
from annex_lab.sim.figures.runs import Spec

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

# Workload -> the scale of annex-lab sim.
SCALES = {
    "alloc-test": 0.001,
    "cache-scratch": 0.0001,
    "cfrac": 0.002,
    "espresso": 0.01,
    "glibc-simple": 0.002,
    "glibc-thread": 0.001,
    "larson": 0.0003,
    "malloc-large": 0.01,
    "mleak": 0.01,
    "mstress": 0.0005,
    "rptest": 0.001,
    "sh6bench": 0.0002,
    "sh8bench": 0.0002,
    "xmalloc": 0.0005,
    "msgpass": 0.002,
}


def asked(choice: Choice, benchmarks: Iterable[str]) -> list[str]:
    """Those whose workload is asked for."""
    return [name for name in benchmarks if choice.of([ALL[name].workload])]


def maker(choice: Choice, allocator: str) -> Callable[[str, int], Spec]:
    """The run by benchmark and seed."""
    return lambda name, seed: choice.run(ALL[name].workload, allocator, ALL[name].threads, seed)
