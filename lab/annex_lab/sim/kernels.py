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
    of: str = ""  # the kernel in kernels.c, where it has another name
    size: int | None = None  # its third argument

    @property
    def kernel(self) -> str:
        return self.of or self.name


def _load(machine: dict, *levels: str) -> float:
    return sum(machine[level]["latency"] for level in ("l1d", *levels))


def _memory(machine: dict) -> float:
    """A closed row: it is precharged after the last one, activated, read, and 64 bytes come over the bus."""
    dram = machine["dram"]
    ns = dram["controller_ns"] + dram["trp_ns"] + dram["trcd_ns"] + dram["tcas_ns"] + 8 / dram["bus_mts"] * 1000
    return _load(machine, "l2", "llc") + ns * machine["ghz"]


def _ports(machine: dict, kind: str) -> int:
    core = machine["core"]
    return min(core["width"], core["decode"], core["ports"][kind].bit_count())


def _fault(machine: dict) -> float:
    """The kernel's own part, and a page's 64 lines cleared by stores: as fast as it stores them, or as L1 can miss."""
    pages = machine["pages"]
    own = pages["fault_us"] * 1000 * machine["ghz"]
    if pages["clearing"] == "none":
        return own
    return own + 64 * max(pages["clear_line"], _load(machine, "l2", "llc") / machine["l1d"]["mshrs"])


KERNELS = [
    Kernel("dependent-adds", "a chain of additions", lambda m: m["core"]["latency"]["alu"]),
    Kernel("independent-adds", "additions that depend on nothing", lambda m: 1 / _ports(m, "alu"), tolerance=0.1),
    Kernel("dependent-multiplies", "a chain of multiplications", lambda m: m["core"]["latency"]["mul"]),
    Kernel("loads-l1", "a chain of loads in 16 KiB", lambda m: _load(m), of="loads", size=16 << 10),
    Kernel("loads-l2", "in 128 KiB", lambda m: _load(m, "l2"), tolerance=0.1, of="loads", size=128 << 10),
    Kernel("loads-llc", "in 1 MiB", lambda m: _load(m, "l2", "llc"), tolerance=0.1, of="loads", size=1 << 20),
    Kernel("loads-memory", "in 32 MiB", _memory, rounds=1000, tolerance=0.1, of="loads", size=32 << 20),
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
        _fault,
        1,
        4000,
        tolerance=0.15,
    ),
    Kernel("system-calls", "system calls", lambda m: m["system"]["call_us"] * 1000 * m["ghz"], 1, 4000, tolerance=0.25),
]


# --- lines that cores fight for --------------------------------------------------------------------------------------


def pass_on(machine: dict) -> float:
    """Until a line that another core has changed is here: the directory sees to it, and it is fetched."""
    return machine["llc"]["latency"] + machine["coherence"]["transfer"]


def take_back(machine: dict) -> float:
    """Until a line that other cores read is one's own."""
    return machine["llc"]["latency"] + machine["coherence"]["invalidate"]


@dataclass(frozen=True)
class Contended:
    """Of native/kernels_contended.h. `least` cycles an operation of all cores together, with two of them or more.

    `exact` says what it is with any number of cores, where that has a closed form.
    """

    name: str
    what: str
    least: Callable[[dict], float]
    hand_overs: int  # of lines from core to core, one after the other, in an operation
    exact: Callable[[dict], float] | None = None
    alone: bool = True  # has a meaning on one core
    in_pairs: bool = False  # an operation is of a pair of cores, and pairs have nothing in common
    of: str = ""  # the kernel in kernels_contended.h, where it has another name
    machine: str = ""  # what the machine has beside the paper's
    each: int = 0  # operations of a core, at least: all start some way apart
    may_fall: bool = False  # several cores' operations overlap, so that they get cheaper until the last level is busy

    @property
    def kernel(self) -> str:
        return self.of or self.name


CONTENDED = [
    Contended(
        "contended-atomics",
        "locked increments of one counter",
        pass_on,
        1,
        # It looked for its line in L1 before it waited for it.
        exact=lambda m: pass_on(m) + m["core"]["atomic"] - m["l1d"]["latency"],
    ),
    Contended(
        "far-atomics",
        "the same, done at the last level: one after the other there",
        lambda m: m["coherence"]["far"],
        0,
        of="contended-atomics",
        machine='[coherence]\natomics = "far"\n',
        may_fall=True,
        each=2000,
    ),
    Contended("test-and-set", "a lock taken by exchanges, and given back", pass_on, 1),
    Contended(
        "ticket-lock",
        "a lock passed on in turn: the holder writes, the next one reads",
        lambda m: take_back(m) + pass_on(m),
        2,
    ),
    Contended(
        "poll-loop",
        "a word that all poll, written by each in turn; with two, a ping-pong",
        lambda m: take_back(m) + pass_on(m),
        2,
        alone=False,
    ),
    Contended(
        "queue",
        "a message of a line from one core to another, that says where the next one is",
        pass_on,
        1,
        alone=False,
        in_pairs=True,
    ),
]
