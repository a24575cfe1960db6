"""What memory channels change: the same programs with one, two and four."""

import itertools

from annex_lab.sim.validation.section import Section
from annex_lab.sim.validation.validator import Validator

MACHINE = "speedmalloc-16"
THREADS = 16
CHANNELS = (1, 2, 4)
SLOWER = 0.02  # more channels may not make a program slower by more
RUNS = (
    ("mstress", 0.002, "jemalloc"),
    ("mstress", 0.002, "mimalloc3"),
    ("alloc-test", 0.002, "jemalloc"),
    ("alloc-test", 0.002, "mimalloc3"),
    ("xmalloc", 0.002, "mimalloc3"),
    ("larson", 0.002, "mimalloc3"),
    ("gap-bfs", 0.02, "jemalloc"),
    ("nas-dc", 0.006, "jemalloc"),
)


def _memory_share(results: dict) -> float:
    """Of busy cycles: waiting for memory."""
    waiting = sum(results["all"][origin]["cycles"]["dram"] for origin in ("program", "allocator"))
    return waiting / results["busy_cycles"]


def of_channels(validator: Validator) -> Section:
    section = Section(
        "Memory channels",
        f"Cycles with {THREADS} threads on {MACHINE} (Table 2 of SpeedMalloc has no number of channels; the preset has "
        "one), by channels: relative to one, and in brackets the share of busy cycles that wait for memory. Bound: "
        f"with more, no program is slower by more than {100 * SLOWER:.0f} %.",
        ["program", "allocator", *(f"{count} channel{'s' if count > 1 else ''}" for count in CHANNELS), ""],
    )
    files = {
        count: validator.machine(f"channels-{count}", f'base = "{MACHINE}"\n[dram]\nchannels = {count}\n')
        for count in CHANNELS
    }
    guests = [validator.workload(name, scale, THREADS) for name, scale, _ in RUNS]
    jobs = [(who, allocator, count) for who, (_, _, allocator) in zip(guests, RUNS, strict=True) for count in CHANNELS]
    results = validator.each(lambda job: validator.simulate(job[0], files[job[2]], job[1]), jobs)
    for i, (name, _, allocator) in enumerate(RUNS):
        runs = results[i * len(CHANNELS) : (i + 1) * len(CHANNELS)]
        ratios = [one["cycles"] / runs[0]["cycles"] for one in runs]
        cells = [f"{ratio:.3f} ({100 * _memory_share(one):.0f} %)" for ratio, one in zip(ratios, runs, strict=True)]
        met = all(later <= earlier * (1 + SLOWER) for earlier, later in itertools.pairwise(ratios))
        section.rows.append([name, allocator, *cells, section.verdict(met, f"{name} under {allocator}: slower")])
    return section
