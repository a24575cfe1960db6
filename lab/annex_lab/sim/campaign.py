"""A campaign of simulated runs: its parts read, joined and set against each other. The command annex-lab sim-report.

A part is what `annex-lab sim --json` writes, or what lab/campaign/sim/Snakefile leaves where a run failed. Runs are set
against each other only where workload, sizes, machine, threads, seed and scale are the same. Ratios of several seeds
are taken seed by seed; shown is their geometric mean, and in brackets (largest - smallest) / mean.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from annex_lab import stats

AUTO = "auto"  # as a machine: a core for each thread
FORMAT = "annex-sim-campaign-1"
FIGURE_BASE = "jemalloc"  # SpeedMalloc's Figure 9 is relative to it
TABLE_BASE = "glibc"


class Unusable(Exception):
    """A file that is no part; the message says which and why."""


@dataclass(frozen=True)
class Run:
    """What a campaign keeps of one run."""

    workload: str
    allocator: str
    machine: str  # as asked for
    simulated_machine: str
    parameters: str  # digest of the machine's
    simulator: str  # its build
    threads: int
    seed: int
    scale: float | None
    options: tuple[str, ...]  # the workload's sizes, where they are not its own
    cycles: int  # from start to end
    busy_cycles: int  # of all cores, without idle ones
    instructions: int
    allocator_calls: int
    allocator_instructions: int
    allocator_cycles: int
    allocator_atomic_cycles: int
    l2_stalls_inside: int  # cycles that cores waited for misses of the L2, each once
    l2_stalls_caused: int  # outside the allocator, on lines that it evicted or used
    l2_miss_cycles_inside: int  # the sum of the misses' own times, in which those that overlap count several times
    l2_miss_cycles_caused: int
    l2_miss_cycles: int
    peak_bytes: int
    average_bytes: int
    host_s: float
    layout: int = 0  # its number; parts of older simulators have none, and one layout

    @property
    def place(self) -> tuple[str, int]:
        return self.machine, self.threads


@dataclass(frozen=True)
class Failure:
    workload: str
    allocator: str
    machine: str
    threads: int
    seed: int
    exit_status: int
    why: str


def _caused(by_blame: dict[str, int]) -> int:
    return by_blame["evicted"] + by_blame["touched"] + by_blame["evicted_and_touched"]


def _run(part: dict) -> Run:
    allocator, pages = part["allocator"], part["memory"]["pages"]
    stalls, beyond = allocator["l2_miss_stalls"], allocator["l2_miss_cycles"]
    machine = part["machine"]["name"]
    return Run(
        part.get("workload") or " ".join(part["command"]),
        allocator["name"],
        part.get("requested_machine", machine),
        machine,
        hashlib.sha256(json.dumps(part["machine"], sort_keys=True).encode()).hexdigest()[:12],
        part.get("simulator", ""),
        part["requested_threads"],
        part.get("seed", 1),
        part.get("scale"),
        tuple(part.get("workload_options", ())),
        part["cycles"],
        part["busy_cycles"],
        part["instructions"],
        allocator["calls"],
        allocator["instructions"],
        allocator["cycles"],
        allocator["atomic_cycles"],
        stalls["inside"],
        _caused(stalls),
        beyond["inside"],
        _caused(beyond),
        sum(beyond.values()),
        pages["peak_resident"],
        round(pages["average_resident"]),
        part["host_s"],
        part.get("layout", 0),
    )


def read(file: Path) -> Run | Failure:
    try:
        part = json.loads(file.read_text())
        if "failure" in part:
            return Failure(**part["failure"])
        if part["complete"] and part["exit_status"] == 0:
            return _run(part)
        run = _run(part)
        why = part["ended"] if part["ended"] != "exit" else "the program failed"
        return Failure(run.workload, run.allocator, *run.place, run.seed, part["exit_status"], why)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as why:
        raise Unusable(f"{file}: no result of annex-lab sim ({type(why).__name__}: {why})") from None


def ordered(values: Iterable) -> list:
    return list(dict.fromkeys(values))


def count_of(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


class Campaign:
    """Raises Unusable where two parts are of the same run, or differ in scale or sizes."""

    def __init__(self, parts: list[Run | Failure]):
        self.runs = [part for part in parts if isinstance(part, Run)]
        self.failures = [part for part in parts if isinstance(part, Failure)]
        self.allocators: list[str] = ordered(part.allocator for part in parts)
        self.workloads: list[str] = ordered(part.workload for part in parts)
        self.seeds: list[int] = sorted({run.seed for run in self.runs})
        order = ordered(run.machine for run in self.runs)
        self.places: list[tuple[str, int]] = sorted(
            {run.place for run in self.runs}, key=lambda place: (order.index(place[0]), place[1])
        )
        self._runs = {(run.workload, run.allocator, run.place, run.seed): run for run in self.runs}
        if len(self._runs) < len(self.runs):
            raise Unusable("two parts are of the same workload, allocator, machine, threads and seed")
        lengths: dict[str, tuple] = {}
        for run in self.runs:
            one, other = lengths.setdefault(run.workload, (run.scale, run.options)), (run.scale, run.options)
            if one[0] != other[0]:
                raise Unusable(f"{run.workload}: parts of different scales, {one[0]} and {other[0]}")
            if one[1] != other[1]:
                sizes = (" ".join(options) or "its own" for _, options in (one, other))
                raise Unusable(f"{run.workload}: parts of different sizes, {' and '.join(sizes)}")

    def mixed(self) -> str:
        """Why some of the runs should not be set against each other; empty: there is no reason."""
        builds = {run.simulator for run in self.runs}
        machines = {(run.simulated_machine, run.parameters) for run in self.runs}
        changed = sorted({name for name, _ in machines if sum(name == other for other, _ in machines) > 1})
        why = [f"{len(builds)} builds of the simulator made them"] if len(builds) > 1 else []
        why += [f"{', '.join(changed)} had other parameters in some"] if changed else []
        return "; ".join(why)

    def base(self, wanted: str) -> str:
        return wanted if wanted in self.allocators else self.allocators[0]

    def get(self, workload: str, allocator: str, place: tuple[str, int]) -> list[Run]:
        """Its runs, by seed."""
        found = (self._runs.get((workload, allocator, place, seed)) for seed in self.seeds)
        return [run for run in found if run]

    def ratios(self, workload: str, allocator: str, base: str, place: tuple[str, int], metric: str) -> dict[int, float]:
        """Seed -> the metric under the allocator / under the base; of the seeds that both have."""
        mine, theirs = ({run.seed: run for run in self.get(workload, who, place)} for who in (allocator, base))
        return {
            seed: getattr(run, metric) / getattr(theirs[seed], metric) for seed, run in mine.items() if seed in theirs
        }

    def workloads_at(self, place: tuple[str, int]) -> list[str]:
        there = {run.workload for run in self.runs if run.place == place}
        return [name for name in self.workloads if name in there]

    def common(self, allocators: list[str], places: list[tuple[str, int]]) -> list[str]:
        """The workloads that have a result under each of the allocators in each of the places, with every seed."""
        return [
            name
            for name in self.workloads
            if all(len(self.get(name, who, place)) == len(self.seeds) for who in allocators for place in places)
        ]


@dataclass(frozen=True)
class Mean:
    mean: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        return round((self.high - self.low) / self.mean, 9)


def mean_of(values: Iterable[float]) -> Mean | None:
    """Of ratios: geometric."""
    found = list(values)
    return Mean(stats.geometric_mean(found), min(found), max(found)) if found else None


# --- the figure's numbers -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Panel:
    """Speedups on one machine, or on the machines that `auto` takes, by number of threads."""

    machine: str
    base: str
    workloads: list[str]
    left_out: list[str]
    speedups: dict[str, dict[int, Mean]]  # allocator -> threads -> over the workloads


def panels(campaign: Campaign) -> list[Panel]:
    """Each of its points is the mean over the same workloads."""
    base = campaign.base(FIGURE_BASE)
    made = []
    for machine in ordered(machine for machine, _ in campaign.places):
        places = [place for place in campaign.places if place[0] == machine]
        # Programs that only one thread allocates in ran with one only: their place is the tables.
        several = [place for place in places if place[1] > 1]
        candidates = campaign.workloads_at((several or places)[-1])
        there = {run.allocator for run in campaign.runs if run.machine == machine and run.workload in candidates}
        allocators = [name for name in campaign.allocators if name in there]
        workloads = [name for name in campaign.common(allocators, places) if name in candidates]
        if base not in allocators or not workloads:
            continue
        speedups: dict[str, dict[int, Mean]] = {}
        for allocator in allocators:
            for place in places:
                ratios = [campaign.ratios(name, allocator, base, place, "cycles") for name in workloads]
                by_seed = [1 / stats.geometric_mean([one[seed] for one in ratios]) for seed in campaign.seeds]
                speedups.setdefault(allocator, {})[place[1]] = mean_of(by_seed)
        left_out = [name for name in candidates if name not in workloads]
        made.append(Panel(machine, base, workloads, left_out, speedups))
    return made


def sim_report(
    parts: Annotated[list[Path], typer.Argument(exists=True, help="of annex-lab sim --json, or folders of them")],
    folder: Annotated[Path, typer.Option("--report", file_okay=False, help="write campaign.md, .json and .svg here")],
    made_by: Annotated[str, typer.Option(help="the command that made them all, for the report")] = "",
) -> None:
    """Joins simulated runs, such as a campaign's, into tables and a figure.

    Exit status: 1 where a run failed (the report says so), 2 where a file is no result.
    """
    from annex_lab.sim import campaign_report

    console = Console(stderr=True)
    files = [file for part in parts for file in (sorted(part.rglob("*.json")) if part.is_dir() else [part])]
    try:
        if not files:
            raise Unusable("no parts there")
        campaign = Campaign([read(file) for file in files])
        written = campaign_report.write(campaign, folder, made_by)
    except Unusable as why:
        console.print(str(why), style="red", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(2) from None
    print("\n".join(map(str, written)))
    if mixed := campaign.mixed():
        console.print(f"not all runs are comparable: {mixed}", style="yellow", soft_wrap=True)
    if campaign.failures:
        console.print(
            f"{count_of(len(campaign.failures), 'run')} failed: see {written[0]}", style="yellow", soft_wrap=True
        )
        raise typer.Exit(1)
