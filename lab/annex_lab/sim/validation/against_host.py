"""Allocators' costs, against measurements of this machine, with huge pages and without.

What a huge page takes on a virtual machine depends on when its memory was last used: 0.1 ms if that was just before,
4 ms if it was free for seconds (2 GiB touched, given back and touched again, on the machine of our pages; we suppose
that its hypervisor takes back what is free). No machine file can know that, so the comparison is made without huge
pages on both sides, and made once more with them.
"""

import contextlib
import ctypes
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from annex_lab import intervals
from annex_lab.sim import host, machines, run
from annex_lab.sim.validation import agreement, timed
from annex_lab.sim.validation.section import Section
from annex_lab.sim.validation.validator import PLAIN_STRINGS, Validator

BASE = "glibc"
ALLOCATORS = (BASE, "jemalloc", "mimalloc3", "snmalloc", "tcmalloc", "annex")
# How much of a program, and how large its structures are: long enough that starting up is some per cent at most, as the
# next table says.
PROGRAMS = (
    ("espresso", 0.2, ()),
    ("hashmap", 1, ("--entries=1200000",)),
    ("bintree", 0.1, ()),
    ("strings", 0.15, ()),
    ("tp-small", 0.1, ()),
    ("gauss-free", 0.3, ()),
    ("perl-hashes", 0.5, ()),
)
CELL_BOUND, CELLS_WITHIN = 0.25, 0.9
BIAS_BOUND = 0.07
RANK_BOUND = 0.8
START_UP = run.Guest(["/bin/true"])
_PR_SET_THP_DISABLE = 41  # linux/prctl.h


@dataclass(frozen=True)
class Found:
    """Of one program, by allocator."""

    program: str
    seconds: dict[str, float]  # of CPU time, measured
    cycles: dict[str, int]  # simulated

    def measured(self, allocator: str) -> float:
        return self.seconds[allocator] / self.seconds[BASE]

    def simulated(self, allocator: str) -> float:
        return self.cycles[allocator] / self.cycles[BASE]

    def error(self, allocator: str) -> float:
        return self.simulated(allocator) / self.measured(allocator) - 1

    def rank(self) -> float:
        """Of all allocators, by their ratios as the table shows them."""
        return intervals.rank_correlation(
            [round(self.measured(name), 2) for name in self.seconds],
            [round(self.simulated(name), 2) for name in self.seconds],
        )

    def absolute(self, allocator: str, ghz: float) -> float:
        """Simulated cycles for each of the machine's."""
        return self.cycles[allocator] / (self.seconds[allocator] * ghz * 1e9)


@contextlib.contextmanager
def without_huge_pages() -> Iterator[None]:
    """The kernel gives no huge pages to programs that are started within. Not thread-safe."""
    libc = ctypes.CDLL(None, use_errno=True)

    def forbid(yes: int) -> None:
        if libc.prctl(_PR_SET_THP_DISABLE, yes, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_THP_DISABLE)")

    forbid(1)
    try:
        yield
    finally:
        forbid(0)


def measure(who: run.Guest, rounds: int) -> dict[str, float]:
    """Seconds by allocator, of interleaved rounds."""
    seconds: dict[str, list[float]] = {allocator: [] for allocator in ALLOCATORS}
    for _ in range(rounds):
        for allocator in ALLOCATORS:
            seconds[allocator].append(timed.timed(who, allocator).cpu_s)
    return {allocator: timed.fastest_quarter(times) for allocator, times in seconds.items()}


def _simulated(validator: Validator, who: run.Guest, allocator: str, machine: str = machines.HOST) -> dict:
    return validator.simulate(who, machine, allocator, PLAIN_STRINGS)


def machine(validator: Validator, huge_pages: bool) -> str:
    if huge_pages:
        return machines.HOST
    base = machines.find(machines.HOST, validator.scratch).with_suffix("")
    return validator.machine("host-without-huge-pages", f'base = "{base}"\n[pages]\nhuge_pages = "never"\n')


def collect(validator: Validator, name: str, who: run.Guest, rounds: int, huge_pages: bool) -> Found:
    with contextlib.nullcontext() if huge_pages else without_huge_pages():
        seconds = measure(who, rounds)
    same = dataclasses.replace(who, told_clock=host.tells_clock())
    simulated_on = machine(validator, huge_pages)
    results = validator.each(lambda one: _simulated(validator, same, one, simulated_on), ALLOCATORS)
    return Found(name, seconds, {one: result["busy_cycles"] for one, result in zip(ALLOCATORS, results, strict=True)})


def _per_cent(value: float) -> str:
    return f"{100 * value:+.0f} %"


def ratios(title: str, how: str, all_found: list[Found], ghz: float) -> Section:
    """Ratios to glibc, their ranks, and absolute cycles; `how`: what the table is of."""
    others = ALLOCATORS[1:]
    section = Section(
        title,
        f"{how} Each cell: measured, simulated, and the error. Rank: Spearman's, of the program's six allocators with "
        "glibc as 1, by the figures shown (equal ones have the mean of their places). Absolute: simulated cycles for "
        f"each cycle of the machine (CPU time x its clock, measured: {ghz:.2f} GHz), of all allocators, and of the two "
        f"that are furthest apart. Bounds: error at most {100 * CELL_BOUND:.0f} % in {100 * CELLS_WITHIN:.0f} of 100 "
        f"cells; mean signed error (geometric) within {100 * BIAS_BOUND:.0f} %; rank at least {RANK_BOUND} for each "
        f"program. The bound before, {RANK_BOUND} on the ranks of all cells together, stays in the last row.",
        ["program", *others, "rank", "", "absolute"],
    )
    errors = [found.error(name) for found in all_found for name in others]
    for found in all_found:
        cells = [
            f"{found.measured(name):.2f} {found.simulated(name):.2f} ({_per_cent(found.error(name))})"
            for name in others
        ]
        rank = found.rank()
        verdict = section.verdict(rank >= RANK_BOUND, f"rank within {found.program}: {rank:.2f}")
        absolute = [found.absolute(name, ghz) for name in ALLOCATORS]
        mean = agreement.bias([value - 1 for value in absolute]) + 1
        section.rows.append(
            [found.program, *cells, f"{rank:.2f}", verdict, f"{mean:.2f} ({min(absolute):.2f} to {max(absolute):.2f})"]
        )

    def summary(what: str, text: str, verdict: str) -> None:
        section.rows.append([f"**{what}**", text, *[""] * (len(others) - 1), "", verdict, ""])

    by_allocator = [_per_cent(agreement.bias([found.error(name) for found in all_found])) for name in others]
    section.rows.append(["**mean signed error**", *by_allocator, "", "", ""])
    within = agreement.share_within(errors, CELL_BOUND)
    met = section.verdict(within >= CELLS_WITHIN, f"{100 * within:.0f} % of cells within {100 * CELL_BOUND:.0f} %")
    summary("cells within bound", f"{100 * within:.0f} % of {len(errors)}", met)
    mean = agreement.bias(errors)
    met = section.verdict(abs(mean) <= BIAS_BOUND, f"mean signed error {100 * mean:+.1f} %")
    summary("mean signed error, all cells", f"{100 * mean:+.1f} %", met)
    pooled = intervals.rank_correlation(
        *([getattr(found, side)(name) for found in all_found for name in others] for side in ("measured", "simulated"))
    )
    met = section.verdict(pooled >= RANK_BOUND, f"rank over all cells {pooled:.2f}")
    summary("rank over all cells", f"{pooled:.2f}", met)
    return section


def start_up(validator: Validator, programs: list[Found], rounds: int, ghz: float) -> Section:
    """What a program takes that does nothing, of what it consists, and how much of the others' time that is."""
    section = Section(
        "Starting up, against this machine",
        "`/bin/true` under each allocator, in milliseconds of CPU time: measured; simulated, not told and told how "
        "fast the clock is (a file that TCMalloc reads; where there is none it measures); the part of page faults in "
        "it; and the largest share that starting up has in the time of a program above, measured. No bound: it "
        "shows what the table above would be of if the runs were short.",
        ["allocator", "measured", "simulated, not told", "told", "page faults' part", "largest share above"],
    )
    measured = measure(START_UP, 4 * rounds)
    results = [
        validator.each(
            lambda one, told=told: _simulated(validator, dataclasses.replace(START_UP, told_clock=told), one),
            ALLOCATORS,
        )
        for told in (False, True)
    ]
    for name, untold, told in zip(ALLOCATORS, *results, strict=True):
        faults = sum(untold["all"][origin]["cycles"]["page_fault"] for origin in ("program", "allocator"))
        share = max(measured[name] / program.seconds[name] for program in programs)
        section.rows.append(
            [
                name,
                f"{1000 * measured[name]:.2f}",
                *(f"{one['busy_cycles'] / ghz / 1e6:.2f}" for one in (untold, told)),
                f"{100 * faults / untold['busy_cycles']:.0f} %",
                f"{100 * share:.1f} %",
            ]
        )
    return section


WITHOUT = (
    "Allocators' ratios, against this machine",
    "CPU time relative to glibc, measured here (the fastest quarter of interleaved rounds) and simulated on the preset "
    "`host`: the same command with the same string functions, told of the clock or not as here; without huge pages on "
    "both sides, as what one takes here is 0.1 ms or 4 ms, by when its memory was last used.",
)
WITH = (
    "The same, with huge pages",
    "Huge pages where programs and the kernel's settings have them, which was the only comparison before.",
)


def against_host(validator: Validator, rounds: int) -> list[Section]:
    ghz = host.clock()
    guests = {name: validator.workload(name, scale, sizes=sizes) for name, scale, sizes in PROGRAMS}
    without, with_them = (
        [collect(validator, name, who, rounds, huge_pages) for name, who in guests.items()]
        for huge_pages in (False, True)
    )
    return [
        ratios(*WITHOUT, without, ghz),
        ratios(*WITH, with_them, ghz),
        start_up(validator, with_them, rounds, ghz),
    ]
