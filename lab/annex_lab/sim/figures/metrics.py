"""What a figure may ask of a run: numbers out of what annex-lab sim --json writes.

Cores past `thread_cores` are a support core's: _main leaves them out, _all has them, too.
"""

import functools
from collections.abc import Callable

import numpy

from annex_lab.sim.energy import model, parameters

SYNCHRONIZATION = ("atomic", "coherence")
KERNEL = ("page_fault", "system_call")
CAUSED = ("evicted", "evicted_and_touched")  # misses on lines that the allocator evicted: conflicts with its metadata
BLAMES = ("inside", "evicted", "touched", "evicted_and_touched", "other")
ENERGY, ENERGY_DRAWN = "energy", "energy_drawn"
ALLOCATOR_INSTRUCTIONS, ALLOCATOR_CYCLES = "allocator_instructions", "allocator_cycles"
ALLOCATOR_ATOMICS = "allocator_locked_instructions"
ALLOCATOR_TRANSFERS = "allocator_transfers"  # lines that the allocator's code fetched out of other cores' caches
SUPPORT_TRANSFERS = "support_transfers"  # lines that a support core took out of other cores' caches, a call
MISS_STALLS = "miss_stalls"
MALLOC_LENGTHS, FREE_LENGTHS, BLOCKS_ASKED = "malloc_lengths", "free_lengths", "blocks_asked"
FREES = "frees"
L1D_MISSES = "l1d_misses"
MAIN_INSTRUCTIONS = "instructions_main"
UNIT_WAITS = "unit_main"
BUSY_SECONDS = "busy_seconds"
KERNEL_CYCLES = "kernel_cycles"  # of all cores, in page faults and system calls
CALL_CYCLES, CALL_KERNEL_CYCLES = "allocator_call_cycles", "allocator_kernel_cycles"  # from calls' entry to return
LAYOUT = "layout"  # its number; older simulators have one, 0
LLC_LOAD_MISSES, LLC_STORE_MISSES, PAGE_WALKS, CALLS = "llc_load_misses", "llc_store_misses", "page_walks", "calls"
_ORIGINS = ("program", "allocator")


def _cores(part: dict, main: bool) -> list[dict]:
    return part["cores"][: part["machine"]["thread_cores"]] if main else part["cores"]


def _l2_stalls(part: dict, main: bool) -> float:
    """Cycles that cores waited for misses of the L2 (of a core without one: of its L1), each once."""
    return sum(sum(core[origin]["miss_stalls"].values()) for core in _cores(part, main) for origin in _ORIGINS)


def _atomics(part: dict, main: bool) -> float:
    """Cycles of locked instructions, also where other instructions ran beside them."""
    return sum(core[origin]["atomic_cycles"] for core in _cores(part, main) for origin in _ORIGINS)


def _busy(part: dict, main: bool) -> float:
    return sum(core["busy_cycles"] for core in _cores(part, main))


def _main_instructions(part: dict) -> float:
    return sum(core["instructions"] for core in _cores(part, True))


def _unit(part: dict) -> float:
    """Cycles that main cores waited for a unit: a support core, or an accelerator at the core."""
    return sum(core[origin]["cycles"]["unit"] for core in _cores(part, True) for origin in _ORIGINS)


def _kernel(part: dict) -> float:
    return sum(part["all"][origin]["cycles"][cause] for origin in _ORIGINS for cause in KERNEL)


def _allocator_synchronization(part: dict) -> float:
    return sum(part["all"]["allocator"]["cycles"][cause] for cause in SYNCHRONIZATION)


def _llc_misses(part: dict, access: str) -> float:
    """Of demand accesses of all cores; the kernel's clearing of pages is none of the program's events."""
    misses = part["memory"]["llc"]["misses"]
    return sum(misses[origin][access] for origin in _ORIGINS)


def _l1d_misses(part: dict) -> float:
    """Of demand accesses, without the kernel's clearing of pages."""
    by_core = (core["l1d"]["misses"] for core in part["memory"]["cores"])
    return sum(misses[origin][access] for misses in by_core for origin in _ORIGINS for access in ("load", "store"))


def _page_walks(part: dict) -> float:
    return sum(sum(core["stlb"]["misses"].values()) for core in part["memory"]["cores"])


def _miss_stalls(part: dict) -> float:
    """Cycles that were lost to memory and to page walks."""
    return sum(part["all"][origin]["cycles"][cause] for origin in _ORIGINS for cause in ("dram", "tlb"))


METRICS: dict[str, Callable[[dict], float]] = {
    "cycles": lambda part: part["cycles"],  # from start to end
    "instructions": lambda part: part["instructions"],
    MAIN_INSTRUCTIONS: _main_instructions,
    UNIT_WAITS: _unit,
    KERNEL_CYCLES: _kernel,
    BUSY_SECONDS: lambda part: _busy(part, False) / (part["machine"]["ghz"] * 1e9),
    "busy_main": lambda part: _busy(part, True),
    "busy_all": lambda part: _busy(part, False),
    "l2_stalls_main": lambda part: _l2_stalls(part, True),
    "l2_stalls_all": lambda part: _l2_stalls(part, False),
    "atomics_main": lambda part: _atomics(part, True),
    "atomics_all": lambda part: _atomics(part, False),
    "allocator_synchronization": _allocator_synchronization,
    "l2_misses": lambda part: sum(part["allocator"]["l2_misses"][blame] for blame in BLAMES),
    "l2_misses_conflict": lambda part: sum(part["allocator"]["l2_misses"][blame] for blame in CAUSED),
    "l2_misses_metadata": lambda part: sum(part["allocator"]["l2_misses"][blame] for blame in ("inside", *CAUSED)),
    ALLOCATOR_CYCLES: lambda part: part["allocator"]["cycles"],
    ALLOCATOR_ATOMICS: lambda part: part["all"]["allocator"]["atomics"],
    ALLOCATOR_INSTRUCTIONS: lambda part: part["all"]["allocator"]["instructions"],
    ALLOCATOR_TRANSFERS: lambda part: sum(
        core["coherence"]["transfers"]["allocator"] for core in part["memory"]["cores"]
    ),
    L1D_MISSES: _l1d_misses,
    LLC_LOAD_MISSES: lambda part: _llc_misses(part, "load"),
    LLC_STORE_MISSES: lambda part: _llc_misses(part, "store"),
    PAGE_WALKS: _page_walks,
    MISS_STALLS: _miss_stalls,
    CALLS: lambda part: part["allocator"]["calls"],
    "peak_resident": lambda part: part["memory"]["pages"]["peak_resident"],
    "average_resident": lambda part: part["memory"]["pages"]["average_resident"],
    LAYOUT: lambda part: part.get("layout", 0),
}


@functools.cache
def _drawn():
    return parameters.draw()


def energy(part: dict) -> dict:
    """Of the chip, in joules: nominal, and for each draw of the estimate's parameters, which runs share."""
    found = model.of(part, _drawn()).chip
    return {ENERGY: float(found[0]), ENERGY_DRAWN: found}


def _support(part: dict) -> dict:
    """Of a run with support cores."""
    unit = part.get("support_core")
    if unit is None:
        return {}
    numbers = slice(unit["core"], unit["core"] + len(unit["each"]))
    own = part["cores"][numbers]
    taken = sum(core["coherence"]["transfers"]["allocator"] for core in part["memory"]["cores"][numbers])
    mallocs = max(unit["malloc_queue"]["taken"], 1)
    return {
        "support_busy": sum(core["busy_cycles"] for core in own),
        "support_time": part["cycles"] * len(own),
        "malloc_to_pointer": unit["asked_to_answered"] / mallocs,
        "malloc_queued": unit["malloc_queue"]["waited"] / mallocs,
        "cycles_a_call": unit["service"] / max(unit["served"], 1),
        SUPPORT_TRANSFERS: taken / max(unit["served"], 1),
    }


def _lengths(function: dict) -> numpy.ndarray:
    """Of one function's calls, a row a bin: the first length beyond it (without the kernel's cycles), calls, cycles."""
    rows = [(one["below"], one["calls"], one["cycles"]) for one in function.get("lengths", [])]
    return numpy.array(rows, dtype=float).reshape(-1, 3)


def _calls(part: dict) -> dict:
    """Cycles between entry and return of the allocator's functions, without the kernel's."""
    functions = part["allocator"].get("functions", {})
    own = {name: float(function["cycles"] - function["kernel_cycles"]) for name, function in functions.items()}
    if not own:
        return {}
    return {
        "malloc_user_cycles": own["allocate"],
        "allocator_user_cycles": sum(own.values()),
        CALL_CYCLES: sum(function["cycles"] for function in functions.values()),
        CALL_KERNEL_CYCLES: sum(function["kernel_cycles"] for function in functions.values()),
        MALLOC_LENGTHS: _lengths(functions["allocate"]),
        FREE_LENGTHS: _lengths(functions["free"]),
        FREES: functions["free"]["calls"],
    }


def _mallacc(part: dict) -> dict:
    """Of a run with malloc caches."""
    unit = part.get("mallacc")
    if unit is None:
        return {}
    return {
        "mallacc_lookup_hits": unit["lookup_hits"] / max(unit["lookups"], 1),
        BLOCKS_ASKED: [one["blocks"] for one in unit.get("blocks_asked", [])],  # of each size class
    }


def measure(part: dict) -> dict:
    return (
        {name: float(of(part)) for name, of in METRICS.items()}
        | _support(part)
        | _calls(part)
        | _mallacc(part)
        | energy(part)
    )
