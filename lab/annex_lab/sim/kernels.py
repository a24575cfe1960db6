"""Microkernels and what each must cost on a machine, by construction, from the machine's parameters alone."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Kernel:
    """`expected` cycles an operation, of `operations` in a round of native/kernels.c; right within `tolerance`."""

    name: str
    what: str
    expected: Callable[[dict], float]
    operations: int = 100
    rounds: int = 2000
    tolerance: float = 0.05
    threads: int = 1


def _load(machine: dict, *levels: str) -> float:
    return sum(machine[level]["latency"] for level in ("l1d", *levels))


def _memory(machine: dict) -> float:
    """A closed row: it is precharged after the last one, activated, read, and 64 bytes come over the bus."""
    dram = machine["dram"]
    ns = dram["controller_ns"] + dram["trp_ns"] + dram["trcd_ns"] + dram["tcas_ns"] + 8 / dram["bus_mts"] * 1000
    return _load(machine, "l2", "llc") + ns * machine["ghz"]


def _ports(machine: dict, kind: str) -> int:
    return min(machine["core"]["width"], machine["core"]["ports"][kind].bit_count())


KERNELS = [
    Kernel("dependent-adds", "a chain of additions", lambda m: m["core"]["latency"]["alu"]),
    Kernel("independent-adds", "additions that depend on nothing", lambda m: 1 / _ports(m, "alu"), tolerance=0.1),
    Kernel("dependent-multiplies", "a chain of multiplications", lambda m: m["core"]["latency"]["mul"]),
    Kernel("loads-l1", "a chain of loads in 16 KiB", lambda m: _load(m)),
    Kernel("loads-l2", "in 128 KiB", lambda m: _load(m, "l2"), tolerance=0.1),
    Kernel("loads-llc", "in 1 MiB", lambda m: _load(m, "l2", "llc"), tolerance=0.1),
    Kernel("loads-memory", "in 32 MiB", _memory, rounds=1000, tolerance=0.1),
    Kernel(
        "store-to-load",
        "a store and a load of the same eight bytes",
        lambda m: m["core"]["forward"] + m["core"]["latency"]["store"],
        tolerance=0.1,
    ),
    Kernel("atomics", "locked increments of one core", lambda m: m["core"]["atomic"], tolerance=0.1),
    Kernel(
        "branches-alternating",
        "a branch that alternates, and its loop's: always right, each taken one in a cycle of its own",
        lambda m: 2 * max(m["core"]["taken"], 1),
        rounds=1000,
        tolerance=0.25,
    ),
    Kernel(
        "branches-random",
        "at random, beside the alternating one: half of them wrong, known after their index, load, and three more",
        lambda m: (m["core"]["mispredict"] + m["l1d"]["latency"] + 7) / 2,
        rounds=1000,
        tolerance=0.15,
    ),
    Kernel(
        "page-touch",
        "first touches of pages",
        lambda m: m["pages"]["fault_us"] * 1000 * m["ghz"],
        1,
        4000,
        tolerance=0.15,
    ),
    Kernel("system-calls", "system calls", lambda m: m["system"]["call_us"] * 1000 * m["ghz"], 1, 4000, tolerance=0.25),
]
