"""What memory channels change: the same programs with one, two and four."""

import itertools

from annex_lab.sim.validation.section import Section
from annex_lab.sim.validation.validator import OVER_SEEDS, Validator

MACHINE = "speedmalloc-16"
THREADS = 16
CHANNELS = (1, 2, 4)
SLOWER = 0.02  # more channels may not make a program slower by more
# How much of a workload, how large its structures are, under which allocator.
RUNS = (
    ("mstress", 1, ("--items=400",), "jemalloc"),
    ("mstress", 1, ("--items=400",), "mimalloc3"),
    ("alloc-test", 0.002, ("--slots=64000",), "jemalloc"),
    ("alloc-test", 0.002, ("--slots=64000",), "mimalloc3"),
    ("xmalloc", 0.032, ("--batch=256", "--queue=16"), "mimalloc3"),
    ("larson", 0.002, ("--slots=1400",), "mimalloc3"),
    ("gap-bfs", 1, ("--vertices=1310",), "jemalloc"),
    ("nas-dc", 1, ("--tuples=1500",), "jemalloc"),
)


def _memory_share(runs: list[dict]) -> float:
    """Of busy cycles: waiting for memory."""
    waiting = sum(run["all"][origin]["cycles"]["dram"] for run in runs for origin in ("program", "allocator"))
    return waiting / sum(run["busy_cycles"] for run in runs)


def of_channels(validator: Validator) -> Section:
    section = Section(
        "Memory channels",
        f"Cycles with {THREADS} threads on {MACHINE}, means over {OVER_SEEDS}, by channels: relative to one, and "
        "in brackets the share of busy cycles that wait for memory. (Table 2 of SpeedMalloc gives no number of "
        f"channels; the preset has one.) Bound: with more, no program is slower by more than {100 * SLOWER:.0f} %.",
        ["program", "allocator", *(f"{count} channel{'s' if count > 1 else ''}" for count in CHANNELS), ""],
    )
    files = {
        count: validator.machine(f"channels-{count}", f'base = "{MACHINE}"\n[dram]\nchannels = {count}\n')
        for count in CHANNELS
    }
    for name, scale, sizes, allocator in RUNS:
        who = validator.workload(name, scale, THREADS, sizes)
        of_each = validator.each_with_seeds(
            lambda count, seed, who=who, allocator=allocator: validator.simulate(
                who, files[count], allocator, seed=seed
            ),
            CHANNELS,
        )
        cycles = [sum(run["cycles"] for run in runs) for runs in of_each]
        cells = [
            f"{value / cycles[0]:.3f} ({100 * _memory_share(runs):.0f} %)"
            for value, runs in zip(cycles, of_each, strict=True)
        ]
        met = all(later <= earlier * (1 + SLOWER) for earlier, later in itertools.pairwise(cycles))
        section.rows.append([name, allocator, *cells, section.verdict(met, f"{name} under {allocator}: slower")])
    return section
