"""What Mallacc's figures share: its machine, its allocator with markers, workloads, how much of them is simulated."""

from collections.abc import Callable

from annex_lab.programs import warm
from annex_lab.sim.figures.figure import LEAST_SCALE, Choice
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.values import Value, of, over

MACHINE = "haswell-1"
TCMALLOC = "gperftools-marked"  # the paper's
ALLOCATORS = (TCMALLOC, "annex-marked", "annex-solo-marked")
UNIT, LIMIT = "mallacc", "mallacc-limit"
POTENTIAL = ("mallacc.entries=32",)  # the paper's Figures 13 and 14
CASES = {"32 entries": (UNIT, POTENTIAL), "limit": (LIMIT, ())}  # the hardware and its settings
WITH_SOFTWARE = {"software": ("", ()), **CASES}
MALLOC, ALLOCATOR = "malloc_user_cycles", "allocator_user_cycles"

# Workload -> the scale of annex-lab sim.
STRIDES = {warm.name_of(name): 0.0002 for name in warm.PAIRS}
MICRO = STRIDES | {"gauss": 0.002, "gauss-free": 0.002, "antagonist": 0.02}  # one pass of the last two
MACRO = {"perl-hashes": 0.008, "xalan": 0.004, "xapian": 0.004, "sqlite3": 0.008, "espresso": 0.01, "cfrac": 0.011}
SCALES = MICRO | MACRO


def papers_own(choice: Choice) -> list[str]:
    """For what needs many runs: the paper's allocator, where it is asked for, else those that are."""
    return choice.among([TCMALLOC]) or list(choice.allocators)


def maker(
    choice: Choice, allocator: str, hardware: str = "", settings: tuple[str, ...] = ()
) -> Callable[[str, int], Spec]:
    def run(workload: str, seed: int) -> Spec:
        scale = max(LEAST_SCALE, choice.scales[workload] * choice.scale_factor)
        sizes = choice.sizes.get(workload, ())
        return Spec(workload, allocator, 1, seed, scale, MACHINE, hardware, settings, sizes)

    return run


def time(choice: Choice, allocator: str, metric: str, hardware: str, settings: tuple[str, ...] = ()) -> Value:
    """Cycles of that, over those of the same allocator in software."""
    return over(of(maker(choice, allocator, hardware, settings), metric), of(maker(choice, allocator), metric))


def saved(value: Value) -> Value:
    return lambda results, workload, seed: 1 - value(results, workload, seed)
