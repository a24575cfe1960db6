"""The numbers that SpeedMalloc's text gives, with the section or table they are from. None is read off a picture."""

from annex_lab.sim.figures.values import MEAN

# Table 3: speedups over jemalloc with 16 threads; mimalloc's version is not said.
SPEEDMALLOC = {
    "larson": 3.19,
    "xmalloc": 1.16,
    "cache-scratch": 1.62,
    "sh6bench": 1.73,
    "sh8bench": 1.49,
    "mstress": 1.71,
    "alloc-test": 1.46,
    "gap-bfs": 3.57,
    "gap-bc": 1.20,
    "nas-dc": 1.64,
}
# Table 3: the allocator's part of all instructions.
SHARES = {
    "larson": 0.0599,
    "xmalloc": 0.0245,
    "cache-scratch": 0.0262,
    "sh6bench": 0.0555,
    "sh8bench": 0.0722,
    "mstress": 0.0546,
    "alloc-test": 0.0391,
    "gap-bfs": 0.0307,
    "gap-bc": 0.0037,
    "nas-dc": 0.0694,
}
OVER_JEMALLOC = {
    "jemalloc": dict.fromkeys(SPEEDMALLOC, 1.0),
    "tcmalloc": {
        "larson": 2.71,
        "xmalloc": 1.06,
        "cache-scratch": 1.49,
        "sh6bench": 1.63,
        "sh8bench": 1.31,
        "mstress": 1.65,
        "alloc-test": 1.04,
        "gap-bfs": 2.55,
        "gap-bc": 1.18,
        "nas-dc": 1.10,
    },
    "mimalloc3": {
        "larson": 2.17,
        "xmalloc": 1.09,
        "cache-scratch": 1.54,
        "sh6bench": 1.45,
        "sh8bench": 1.39,
        "mstress": 1.62,
        "alloc-test": 1.40,
        "gap-bfs": 2.50,
        "gap-bc": 1.16,
        "nas-dc": 1.39,
    },
}
OVER_JEMALLOC_MEAN = {"jemalloc": 1.0, "tcmalloc": 1.48, "mimalloc3": 1.52}
TABLE = "Table 3"

THREADS = (1, 2, 4, 8, 16)
# 6.2.1: SpeedMalloc's mean speedup over each, by threads.
SPEEDUP = {
    "jemalloc": dict(zip(THREADS, (1.39, 1.40, 1.58, 1.73, 1.75), strict=True)),
    "tcmalloc": dict(zip(THREADS, (1.21, 1.15, 1.18, 1.16, 1.18), strict=True)),
    "mimalloc3": dict(zip(THREADS, (1.17, 1.22, 1.25, 1.21, 1.15), strict=True)),
}
SPEEDUP_FROM = "6.2.1"

# 6.2.1: SpeedMalloc's mean speedup over accelerators, with 16 threads and with one; theirs over jemalloc are quotients.
SPEEDUP_OVER_HARDWARE = {"memento-plus": 1.18, "mallacc-16k": 1.23}
SINGLE_OVER_HARDWARE = {"mallacc-16k": 1.03}
HARDWARE_OVER_JEMALLOC = {name: round(SPEEDUP["jemalloc"][16] / of, 2) for name, of in SPEEDUP_OVER_HARDWARE.items()}
MEMENTO_OVER_JEMALLOC = HARDWARE_OVER_JEMALLOC["memento-plus"]
MEMENTO_OVER_JEMALLOC_REDIS = 1.1  # 6.2.1, footnote 13: about that, with one thread

SINGLE = {"jemalloc": 1.09, "tcmalloc": 1.08, "mimalloc3": 1.04}  # 6.2.1, one thread: of eight workloads
SINGLE_HARDWARE_OVER_JEMALLOC = {name: round(SINGLE["jemalloc"] / of, 2) for name, of in SINGLE_OVER_HARDWARE.items()}
SINGLE_L2_REMAINS = {"jemalloc": 1 - 0.1993, "tcmalloc": 1 - 0.1469, "mimalloc3": 1 - 0.1365}  # 6.2.1

KERNEL_SHARE, KERNEL_FROM = 0.10, "2.1, less than"  # of the allocator's cycles, of others' measurements

VARIATION = {"gap-bfs": 2.55, "larson": 2.71}  # Figure 1's caption
CONFLICT_SHARE = 0.283  # Figure 1's caption: of all misses, BFS under TCMalloc
SYNCHRONIZATION_SHARE = 0.228  # of execution cycles, Larson under TCMalloc

# 6.2.2. Reduction of L2 miss cycles, as what remains; and their share of all cycles in software.
L2_REMAINS = {"jemalloc": 1 - 0.4236, "tcmalloc": 1 - 0.1876, "mimalloc3": 1 - 0.2280}
L2_SHARE = {"jemalloc": 0.2422, "tcmalloc": 0.1718, "mimalloc3": 0.1808}
# 6.2.2: execution time that goes with the removal of locked instructions, of all of it in software.
ATOMICS_SAVED = {"jemalloc": 0.0357, "tcmalloc": 0.1199, "mimalloc3": 0.1173}
# 6.2.2: execution time that goes over each, and what of it goes with misses of the L2 and with locked instructions.
TIME_SAVED = {
    **{"jemalloc": 0.4293, "tcmalloc": 0.1530, "mimalloc3": 0.1306},
    **{"mallacc-16k": 0.1871, "memento-plus": 0.1502},
}
L2_SAVED = {"jemalloc": 0.1026, "tcmalloc": 0.0478, "mimalloc3": 0.0628, "memento-plus": 0.0373}
LOCKED_SAVED = ATOMICS_SAVED | {"mallacc-16k": 0.1034, "memento-plus": 0.1081}
# 6.2.2: instructions saved, in software over jemalloc's, and by SpeedMalloc over each; of which cores is not said.
INSTRUCTIONS_SAVED = {"tcmalloc": 0.111, "mimalloc3": 0.139}
INSTRUCTIONS_SAVED_OFFLOADED = {"tcmalloc": 0.0497}
MEMORY = {"tcmalloc": 1.0, "mimalloc3": 1.0}  # 6.2.2: nearly the same, about 1 % difference

# 6.3
ENERGY = {
    "jemalloc": {2: 1.20, 4: 1.44, 8: 1.63, 16: 1.69},
    "tcmalloc": {2: 0.98, 4: 1.08, 8: 1.11, 16: 1.15},
    "mimalloc3": {2: 1.03, 4: 1.13, 8: 1.15, 16: 1.12},
}
ENERGY_OVER_HARDWARE = {"mallacc-16k": 1.26, "memento-plus": 1.22}  # with 16 threads
L1D_SPEEDUP = {16: 1.27}  # KiB of the support core's L1D -> speedup over 1 KiB, sh6bench
L1D_POWER = {16: 1.021}
# 6.4.1: mimalloc with an L2 of so many KiB, speedup over 128 KiB
L2_SPEEDUP = {256: 1.04, 1024: 1.17}
# 6.4.2: over TCMalloc. IC-Malloc has no number but that it cannot outperform TCMalloc.
LADDER = {"ic-malloc-signals": 1.09, "speedmalloc": 1.18}


def over(allocator: str) -> dict[str, float]:
    """SpeedMalloc's speedup with 16 threads by workload, as Table 3 has it, and the mean as the text has it."""
    others = OVER_JEMALLOC.get(allocator)
    if others is None:
        return {}
    by_workload = {name: round(SPEEDMALLOC[name] / others[name], 3) for name in SPEEDMALLOC}
    return by_workload | {MEAN: SPEEDUP[allocator][16]}
