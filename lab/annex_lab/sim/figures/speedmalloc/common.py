"""What the figures share: workloads and how much of their work is simulated, allocators, and the offloaded ones."""

from collections.abc import Iterable, Mapping

from annex_lab.programs import spaced
from annex_lab.sim.figures import metrics
from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.figure import Choice, each
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.values import Bounds, Column, Place, Results, Value, cells, in_panel, of, over

MANY = 16  # threads
THREADS = (1, 2, 4, 8, 16)
PEERS = ("jemalloc", "tcmalloc", "mimalloc3")
ANNEX = "annex"  # the default flavour, in software, and as it is on a support core
# SpeedMalloc as in the paper: metadata apart from the blocks, called directly on the support core. It takes one call at
# a time, so that beside it in software stands the default flavour.
OURS = "annex-segregated"
IN_SOFTWARE = {OURS: ANNEX}
ALLOCATORS = (*PEERS, ANNEX, OURS)
TODAY = (*PEERS, "snmalloc", ANNEX)  # in software; that the question is asked of what is left to gain
SUPPORT = "speedmalloc"  # the hardware
# Accelerators at each core, and what the paper calls them; they are built atop TCMalloc (6.1.3, 6.2.2).
MEMENTO, MALLACC = "memento-plus", "mallacc-16k"
ACCELERATORS = {MEMENTO: "Memento+", MALLACC: "Mallacc"}
BUILT_ATOP = "tcmalloc"
ATOP = {MEMENTO: BUILT_ATOP, MALLACC: "gperftools-marked"}  # Mallacc needs a TCMalloc with markers
SIGNALS = ("support_core.service=none",)  # calls cost nothing beside the signals

# Workload -> the scale of annex-lab sim: about as few steps as still show the program at work, in structures as large
# as the papers'. To build them is most of the graphs' and the cube's instructions, however few searches or views.
MULTI = {
    "larson": 0.0015,  # 42,000 replacements by a lineage: two threads
    "xmalloc": 0.0022,  # 16 batches by a producer: more than the queue holds
    "cache-scratch": 0.0001,
    "sh6bench": 0.0002,
    "sh8bench": 0.0002,
    "mstress": 0.1,  # two waves
    "alloc-test": 0.002,  # 20,000 steps by a thread, of 16 in 16,384 slots
    "gap-bfs": 0.0625,  # eight searches
    "gap-bc": 0.0625,  # one source
    "nas-dc": 0.0552,  # the seven views below the whole table's
}
# Where a workload has more by itself than the papers' program (workloads/sizes.csv).
SIZES = {"mstress": ("--items=33750",)}
# Whose structures take most of a run, 0.5 to 1.2 billion instructions: one seed.
ONE_SEED = ("mstress", "gap-bfs", "gap-bc", "nas-dc")
SINGLE = {
    "espresso": 0.01,
    "cfrac": 0.011,  # five relations
    "redis-replay-lpush": 0.2,
    "redis-replay-rpush": 0.2,
    "redis-replay-lpop": 0.2,
    "redis-replay-rpop": 0.2,
    "redis-replay-sadd": 0.2,
    "redis-replay-spop": 0.2,
}
# Real programs of one thread, for the table of every allocator.
REAL = {"espresso": 0.01, "cfrac": 0.011, "xalan": 0.004, "xapian": 0.004, "perl-hashes": 0.008, "sqlite3": 0.008}
SPACED = {spaced.name_of(steps): 0.01 for steps in spaced.STEPS}
SCALES = REAL | MULTI | SINGLE | SPACED


def offloaded(allocator: str) -> str:
    """What its series is called."""
    return f"{allocator} + support core"


def accelerated(hardware: str) -> str:
    """What its series is called."""
    return f"{ATOP[hardware]} + {ACCELERATORS[hardware]}"


def called(allocator: str, hardware: str = "") -> str:
    """What ours is set against: an allocator in software, or what an accelerator is built atop of, with it."""
    return accelerated(hardware) if hardware else allocator


# Panels.
OVER_EACH = f"{offloaded(OURS)}, over each in software"
OVER_ITSELF = "each on the support core, over itself in software"
OVER_HARDWARE = f"{offloaded(OURS)}, over accelerators"


def accelerators(choice: Choice) -> list[str]:
    """None where what they are built atop isn't asked for."""
    return list(ACCELERATORS) if BUILT_ATOP in choice.allocators else []


def seeds_of(choice: Choice, threads: int) -> tuple[int, ...]:
    """All of them with 16 threads, which the paper's claims are about; the first alone on the way there."""
    return choice.seeds if threads == MANY else choice.seeds[:1]


def share_of_instructions(choice: Choice, name: str) -> Value:
    """The allocator's, with MANY threads in software."""
    run = choice.maker(name, MANY)
    return over(of(run, metrics.ALLOCATOR_INSTRUCTIONS), of(run, "instructions"))


def speedup(choice: Choice, mine: str, base: str, threads: int, hardware: str = "", settings=()) -> Value:
    """Cycles under the base in software / under mine."""
    return over(
        of(choice.maker(base, threads), "cycles"), of(choice.maker(mine, threads, hardware, settings), "cycles")
    )


def bounds(choice: Choice, mine: str, base: str, threads: int) -> Bounds:
    """Of a speedup of an offloaded allocator; of one that has another in software beside it, that one's."""
    mine = IN_SOFTWARE.get(mine, mine)
    return Bounds(
        speedup(choice, mine, base, threads, SUPPORT, SIGNALS),
        speedup(choice, mine, base, threads),
    )


def bound_runs(choice: Choice, allocator: str, workloads: Iterable[str], threads: int) -> list[Spec]:
    """With the first seed."""
    allocator = IN_SOFTWARE.get(allocator, allocator)
    return each(choice.maker(allocator, threads, SUPPORT, SIGNALS), workloads, choice.seeds[:1])


def of_accelerators(choice: Choice, workloads: Iterable[str], threads: int) -> list[Spec]:
    made = []
    for hardware in accelerators(choice):
        made += each(choice.maker(ATOP[hardware], threads, hardware), workloads, seeds_of(choice, threads))
    return made


def over_accelerator(choice: Choice, hardware: str, threads: int) -> Value:
    """Ours on the support core over an accelerator atop TCMalloc."""
    return over(
        of(choice.maker(ATOP[hardware], threads, hardware), "cycles"),
        of(choice.maker(OURS, threads, SUPPORT), "cycles"),
    )


def in_software(choice: Choice) -> list[str]:
    """Without those that only a support core can have."""
    return [name for name in choice.allocators if name not in IN_SOFTWARE]


def both(choice: Choice, workloads: Iterable[str], threads: int) -> list[Spec]:
    """Each allocator in software and on the support core."""
    made = []
    for allocator in choice.allocators:
        for hardware in ("", SUPPORT):
            made += each(choice.maker(allocator, threads, hardware), workloads, seeds_of(choice, threads))
    return made


Variant = tuple[str, tuple[str, ...]]  # hardware and settings


def runs_of_variants(choice: Choice, allocator: str, variants: Iterable[Variant]) -> list[Spec]:
    """With MANY threads, and the allocator in software."""
    made = []
    for hardware, settings in (("", ()), *variants):
        made += each(choice.maker(allocator, MANY, hardware, settings), choice.of(MULTI), choice.seeds)
    return made


def cells_of_variants(
    choice: Choice, results: Results, allocator: str, variants: Mapping[str, Variant], panel: str
) -> list[Cell]:
    """Their speedups over the allocator in software."""
    columns = [
        Column(what, speedup(choice, allocator, allocator, MANY, hardware, settings))
        for what, (hardware, settings) in variants.items()
    ]
    return table(choice, results, columns, choice.of(MULTI), in_panel(panel))


def table(
    choice: Choice, results: Results, columns: list[Column], workloads: list[str], place: Place, threads: int = MANY
) -> list[Cell]:
    return [cell for column in columns for cell in cells(results, column, workloads, seeds_of(choice, threads), place)]
