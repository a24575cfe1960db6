"""The same command, the same statistics."""

import hashlib
import json

from annex_lab.sim import machines, run
from annex_lab.sim.validation.section import Section
from annex_lab.sim.validation.validator import Validator

PROGRAMS = {"sh6bench": (), "mstress": ("--items=4000",)}  # and how large their structures are
ALLOCATORS = ("glibc", "jemalloc", "mimalloc3", "annex")
THREADS = (1, 4, 16)
SCALE = 0.001


def _digest(results: dict) -> str:
    kept = {name: value for name, value in results.items() if name not in run.OF_THE_HOST}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:12]


def of_determinism(validator: Validator) -> Section:
    section = Section(
        "Determinism",
        f"{' and '.join(PROGRAMS)}, twice each: SHA-256 of all statistics but the host's time.",
        ["program", "allocator", "threads", "instructions", "statistics", "again", ""],
    )
    whose = [(name, allocator, threads) for name in PROGRAMS for allocator in ALLOCATORS for threads in THREADS]
    guests = {
        (name, threads): validator.workload(name, SCALE, threads, sizes)
        for name, sizes in PROGRAMS.items()
        for threads in THREADS
    }

    def simulated(one: tuple[str, str, int]) -> dict:
        name, allocator, threads = one
        return validator.simulate(guests[name, threads], machines.for_threads(threads), allocator)

    runs = validator.each(simulated, [one for one in whose for _ in range(2)])
    for (name, allocator, threads), first, again in zip(whose, runs[::2], runs[1::2], strict=True):
        digests = _digest(first), _digest(again)
        verdict = section.verdict(digests[0] == digests[1], f"{name} under {allocator} with {threads} threads differs")
        section.rows.append([name, allocator, str(threads), f"{first['instructions']:,}", *digests, verdict])
    return section
