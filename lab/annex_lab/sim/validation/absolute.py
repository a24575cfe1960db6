"""Absolute cycles: how many the simulated machine takes for each one of this machine's, with one thread.

Ratios between allocators, which the older tables judge, can be right where all cycles are too few.
"""

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from annex_lab import stats
from annex_lab.sim import host, machines, run
from annex_lab.sim.validation import against_host, timed
from annex_lab.sim.validation.section import Section
from annex_lab.sim.validation.validator import PLAIN_STRINGS, Validator

ALLOCATORS = against_host.ALLOCATORS
# Those whose cycles are the allocator's more than others'.
PROGRAMS = (("tp", 0.02), ("tp-small", 0.02), ("sized-deletes", 0.02), ("cfrac", 0.02), ("espresso", 0.04))
PROGRAM_BOUND = 0.15
MEAN_BOUND = 0.05
# What the machine leaves out or makes simple, and the parameters that put it in.
SIMPLIFICATIONS = {
    "as it is": [],
    "a walk reads the page table": ["walker.reads=tables"],
    "and a hypervisor's": ["walker.reads=nested tables"],
    "pages lie anywhere in memory": ["pages.frames=scattered"],
    "cores and slices stand in a mesh": ["interconnect.layout=mesh"],
    "a slice takes a request every 4 cycles": ["interconnect.slice_cycles=4"],
}
SIMPLIFIED_UNDER = ("glibc", "annex")


@dataclass(frozen=True)
class Found:
    """Of one program, by allocator."""

    program: str
    cycles: dict[str, float]  # of this machine
    simulated: dict[str, float]

    def ratio(self, allocator: str) -> float:
        return self.simulated[allocator] / self.cycles[allocator]

    def mean(self) -> float:
        return stats.geometric_mean([self.ratio(name) for name in self.cycles])


def cycles_of(rounds: timed.Rounds) -> dict[str, float] | None:
    """By allocator, of the fastest quarter of the rounds: counted, or CPU time x the clock; None without a clock."""
    ghz = rounds.clock.ghz()
    found = {}
    for name, runs in rounds.of.items():
        counted = [float(one.cycles) for one in runs if one.cycles is not None]
        if len(counted) == len(runs):
            found[name] = timed.fastest_quarter(counted)
        elif ghz is None:
            return None
        else:
            found[name] = timed.fastest_quarter([one.cpu_s for one in runs]) * ghz * 1e9
    return found


def simulated(
    validator: Validator, who: run.Guest, machine: str, allocators: tuple[str, ...] = ALLOCATORS
) -> dict[str, float]:
    same = dataclasses.replace(who, told_clock=host.tells_clock())
    results = validator.each(lambda name: validator.simulate(same, machine, name, PLAIN_STRINGS), allocators)
    return {name: result["busy_cycles"] for name, result in zip(allocators, results, strict=True)}


def simplifications(all_found: list[Found], of_each: dict[str, dict[str, dict[str, float]]]) -> Section:
    """`of_each`: simulated cycles by what was taken away, program and allocator."""
    table = Section(
        "Absolute cycles, with each simplification taken away",
        f"The same with one thing changed of the machine, means over {' and '.join(SIMPLIFIED_UNDER)}. No bound: it "
        "shows which of them the cycles that are missing are of.",
        ["", *(found.program for found in all_found), "mean"],
    )
    for what, by_program in of_each.items():
        means = [
            stats.geometric_mean([cycles / found.cycles[name] for name, cycles in by_program[found.program].items()])
            for found in all_found
        ]
        table.rows.append([what, *(f"{mean:.3f}" for mean in means), f"{stats.geometric_mean(means):.3f}"])
    return table


def changed(validator: Validator, machine: str, number: int, settings: list[str]) -> str:
    """The machine with parameters set: its file."""
    folder = validator.scratch / f"changed{number}"
    folder.mkdir()
    return str(machines.changed(Path(machine), "", settings, folder))


def section(all_found: list[Found], how: str) -> Section:
    """`how`: how cycles were found here, and what was seen meanwhile."""
    table = Section(
        "Absolute cycles",
        "Simulated cycles on the preset `host` for each cycle of this machine, one thread, without huge pages on both "
        f"sides, programs whose cycles are the allocator's more than others'. {how} Bounds: a program's mean "
        f"(geometric, over its allocators) within {100 * PROGRAM_BOUND:.0f} % of 1; the mean over the programs within "
        f"{100 * MEAN_BOUND:.0f} %.",
        ["program", *ALLOCATORS, "mean", ""],
    )
    for found in all_found:
        mean = found.mean()
        verdict = table.verdict(abs(mean - 1) <= PROGRAM_BOUND, f"{found.program}: {mean:.2f}")
        table.rows.append([found.program, *(f"{found.ratio(name):.2f}" for name in ALLOCATORS), f"{mean:.2f}", verdict])
    mean = stats.geometric_mean([found.mean() for found in all_found])
    verdict = table.verdict(abs(mean - 1) <= MEAN_BOUND, f"mean over programs {mean:.3f}")
    table.rows.append(["**mean**", *[""] * len(ALLOCATORS), f"{mean:.3f}", verdict])
    return table


def left_out(why: str) -> Section:
    return Section("Absolute cycles", "Simulated cycles for each of this machine's.", [], left_out=why)


def cannot() -> str | None:
    """Why this machine's cycles say nothing about the preset `host`; None: they do."""
    if not host.known():
        return f"{timed.processor()} is not known to the laboratory, and `host` would be another core"
    return None


def of_absolute(validator: Validator, rounds: int) -> list[Section]:
    if why := cannot():
        return [left_out(why)]
    count = timed.counts_cycles()
    machine = against_host.machine(validator, huge_pages=False)
    guests = {name: validator.workload(name, scale) for name, scale in PROGRAMS}
    with against_host.without_huge_pages():  # all in one go, while the machine is quiet
        measured = {name: timed.rounds(who, ALLOCATORS, rounds, count) for name, who in guests.items()}
    cycles = {name: of_one for name, found in measured.items() if (of_one := cycles_of(found))}
    if len(cycles) < len(guests):
        return [left_out("its clock could not be measured, as others kept it busy")]
    all_found = [Found(name, cycles[name], simulated(validator, who, machine)) for name, who in guests.items()]
    clocks = [found.clock.ghz() or 0 for found in measured.values()]
    how = "Cycles counted by the processor" if count else "CPU time x the clock, measured in the same rounds"
    first = section(
        all_found,
        f"{timed.processor()}: {how} ({min(clocks):.2f} to {max(clocks):.2f} GHz), the fastest quarter of {rounds} "
        f"interleaved rounds; {timed.disturbed(measured.values())}.",
    )
    of_each = {}
    for number, (what, settings) in enumerate(SIMPLIFICATIONS.items()):
        file = changed(validator, machine, number, settings)
        of_each[what] = {name: simulated(validator, who, file, SIMPLIFIED_UNDER) for name, who in guests.items()}
    return [first, simplifications(all_found, of_each)]
