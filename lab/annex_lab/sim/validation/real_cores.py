"""Sixteen simulated cores against sixteen real ones: docs/many-cores.md's table, time of each allocator over Annex's.

The real cores are a virtual machine's on an Intel Xeon (docs/results-16-cores.md), which is not here: their figures are
data, real-cores.csv, and so are the simulated ones that docs/many-cores.md printed beside them. Then the same is
simulated again, with the library that ran there where it is at hand (LIBRARY), timed as there by the program's own
clock.
"""

import csv
import itertools
from dataclasses import dataclass
from pathlib import Path

from annex_lab import intervals, paths
from annex_lab.sim.validation import agreement, two_threads
from annex_lab.sim.validation.section import Section
from annex_lab.sim.validation.validator import Validator

DATA = Path(__file__).with_name("real-cores.csv")
COMMIT = "17d8e68"  # of the library that ran on the real cores
LIBRARY = paths.BUILD / COMMIT / "libannex.so"
BASE = "annex"
THREADS = 16
# How much of a program, and how large its structures are: the latter as on the real cores, where --scale 0.06 made them
# smaller too.
RUNS = {
    "mstress": (0.2, ("--items=12000",)),
    "larson": (0.0036, ("--slots=5000",)),
    "xmalloc": (0.096, ("--batch=256", "--queue=16")),
    "sh8bench": (0.006, ()),
    "alloc-test": (0.04, ("--slots=1920000",)),
}
Runs = dict[str, tuple[float, tuple[str, ...]]]
MACHINES = ("speedmalloc-16", "xeon-16")
CELL_BOUND, CELLS_WITHIN = 0.25, 16
RANK_BOUND, RANKS_WITHIN = 0.8, 3

Ratios = dict[str, dict[str, float]]  # by program and peer: time over the base's


@dataclass(frozen=True)
class Data:
    real: Ratios
    simulated: Ratios  # as printed in docs/many-cores.md


def data(file: Path = DATA) -> Data:
    found = Data({}, {})
    with open(file) as stream:
        for row in csv.DictReader(stream):
            for name, table in (("real", found.real), ("simulated", found.simulated)):
                table.setdefault(row["program"], {})[row["peer"]] = float(row[name])
    return found


def rank(real: dict[str, float], simulated: dict[str, float]) -> float:
    """Of a program's allocators, the base among them as 1."""
    return intervals.rank_correlation([1, *real.values()], [1, *(simulated[peer] for peer in real)])


def section(title: str, how: str, real: Ratios, simulated: Ratios) -> Section:
    peers = list(next(iter(real.values())))
    table = Section(
        title,
        f"{how} Each cell: time over {BASE}'s with {THREADS} threads, real, simulated, and the error. Rank: "
        f"Spearman's, of a program's allocators with {BASE} as 1. Bounds: rank at least {RANK_BOUND} in {RANKS_WITHIN} "
        f"of {len(real)} programs; error at most {100 * CELL_BOUND:.0f} % in {CELLS_WITHIN} of "
        f"{sum(map(len, real.values()))} cells.",
        ["program", *peers, "rank", ""],
    )
    ranks, errors = [], []
    for program, of_peers in real.items():
        cells = []
        for peer, measured in of_peers.items():
            errors.append(simulated[program][peer] / measured - 1)
            cells.append(f"{measured:.2f} {simulated[program][peer]:.2f} ({100 * errors[-1]:+.0f} %)")
        ranks.append(rank(of_peers, simulated[program]))
        table.rows.append([program, *cells, f"{ranks[-1]:.2f}", ""])
    high = sum(one >= RANK_BOUND for one in ranks)
    within = sum(abs(error) <= CELL_BOUND for error in errors)
    mean = agreement.bias(errors)
    for what, shown, met in (
        ("ranks within bound", f"{high} of {len(ranks)}", high >= RANKS_WITHIN),
        ("cells within bound", f"{within} of {len(errors)}", within >= CELLS_WITHIN),
    ):
        table.rows.append([f"**{what}**", shown, *[""] * len(peers), table.verdict(met, f"{what}: {shown}")])
    table.rows.append(["**mean signed error**", f"{100 * mean:+.0f} %", *[""] * len(peers), ""])
    return table


def base() -> str:
    """The library that ran on the real cores where it is at hand, else the one that is built."""
    return f"{BASE}-{COMMIT}={LIBRARY}" if LIBRARY.exists() else BASE


def simulate(validator: Validator, machine: str, runs: Runs, seed: int = 1) -> Ratios:
    real = data().real
    jobs = [(program, name) for program in real for name in (base(), *real[program])]
    guests = {program: validator.workload(program, scale, THREADS, sizes) for program, (scale, sizes) in runs.items()}
    seconds = validator.each(
        lambda job: two_threads.simulated_seconds(validator, guests[job[0]], job[1], machine, seed), jobs
    )
    by_program = {
        program: {name: taken for (_, name), taken in group}
        for program, group in itertools.groupby(zip(jobs, seconds, strict=True), key=lambda pair: pair[0][0])
    }
    return {
        program: {name: taken / times[base()] for name, taken in times.items() if name != base()}
        for program, times in by_program.items()
    }


def of_real_cores(validator: Validator) -> list[Section]:
    known = data()
    which = f"the library of {COMMIT}, which ran there" if LIBRARY.exists() else "the library as it is now"
    return [
        section(
            "Sixteen real cores",
            "A virtual machine's on an Intel Xeon, seven rounds, the library of "
            f"{COMMIT}; simulated on speedmalloc-16, cycles from start to end, the library of 2280d61. Both as printed "
            "in [many-cores.md](many-cores.md), which says with what commands they are made.",
            known.real,
            known.simulated,
        ),
        *(
            section(
                f"Sixteen real cores, {machine}",
                f"The same, simulated again on {machine} with {which}: structures as large as there and fewer steps, "
                "time by the program's own clock, as on the real cores.",
                known.real,
                simulate(validator, machine, RUNS),
            )
            for machine in MACHINES
        ),
    ]
