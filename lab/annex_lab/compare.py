"""Two result files beside each other: what changed for an allocator, say between two versions of Annex.

The files come from two runs, between which the machine may have changed speed. So times are taken relative to the other
allocators that both files have: with R the geometric mean of theirs on the same program,

    change = (B's time / B's R) / (A's time / A's R)

each of them the geometric mean over the rounds of its run. Memory does not depend on the machine's mood and is compared
as it is. Where the files share no other allocator, times are, too, and the result says so.
"""

import math
import statistics
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from annex_lab import allocators, document, intervals, machine, report, stats
from annex_lab.document import Unusable
from annex_lab.intervals import Mean


@dataclass(frozen=True)
class Results:
    name: str
    samples: stats.Samples
    versions: dict[str, str]
    cpu: str
    geomeans: dict[tuple[str, str, str, str], float]  # (group, allocator, against, metric) -> ratio

    def workloads(self) -> list[str]:
        return self.samples.programs

    def of(self, workload: str, allocator: str, metric: str) -> list[float]:
        return self.samples.values(workload, allocator, metric)


@dataclass(frozen=True)
class Change:
    workload: str  # or a number of them, for the geometric mean
    ratio: float  # B / A: below 1, B is better
    low: float | None  # 95 % interval of the noise; none from fewer than three rounds of each
    high: float | None

    @property
    def clear(self) -> bool:
        """Beyond the noise."""
        return self.low is not None and (self.low > 1 or self.high < 1)


def load(path: Path) -> Results:
    content = document.load(path)
    return Results(
        path.name,
        stats.Samples(content["results"]),
        {name: what["version"] for name, what in content["allocators"].items()},
        content["machine"]["cpu"],
        {(g["group"], g["allocator"], g["against"], g["metric"]): g["ratio"] for g in content["geomeans"]},
    )


def subjects(a: Results, b: Results) -> list[str]:
    """The Annex flavours in both files, or else every allocator in both."""
    common = [name for name in a.versions if name in b.versions]
    if not common:
        raise Unusable(f"{a.name} and {b.name} have no allocator in common")
    return [name for name in common if allocators.is_ours(name)] or common


def warning(a: Results, b: Results) -> str | None:
    """Where the runs were on two makers' CPUs, on which the same code may be faster and slower than another."""
    first, second = machine.maker(a.cpu), machine.maker(b.cpu)
    if first is None or second is None or first == second:
        return None
    return (
        f"Warning: A is of {first}'s CPU, B of {second}'s: a change may be the CPU's "
        "(the same prefetch took 0.76 of the time on one maker's and 1.28 on another's)."
    )


def yardsticks(a: Results, b: Results, subject: str) -> list[str]:
    """The other allocators that times are taken relative to: the same build in both files."""
    return [name for name in a.versions if name != subject and a.versions[name] == b.versions.get(name)]


def changes(a: Results, b: Results, subject: str, metric: str) -> list[Change]:
    """B against A on each program that both measured, and last their geometric mean."""
    others = [] if metric in stats.MEMORY else yardsticks(a, b, subject)
    found: dict[str, Mean] = {}
    for workload in (name for name in a.workloads() if name in b.workloads()):
        names = [n for n in others if a.of(workload, n, metric) and b.of(workload, n, metric)]
        if not (a.of(workload, subject, metric) and b.of(workload, subject, metric)):
            continue
        first, second = (_relative(run, workload, subject, names, metric) for run in (a, b))
        change = intervals.difference(second, first)
        if not math.isnan(change.value):
            found[workload] = change
    changes = [Change(workload, *stats.as_ratio(change)) for workload, change in found.items()]
    if changes:
        mean = stats.as_ratio(intervals.mean_of(list(found.values())))
        changes.append(Change(f"geometric mean of {len(found)}", *mean))
    return changes


def _relative(run: Results, workload: str, subject: str, others: list[str], metric: str) -> Mean:
    """The logarithm of the subject's figure over the others' geometric mean, of rounds that all have."""
    rounds = run.samples.rounds(workload, metric)
    logarithms = stats.logarithms(rounds[subject])
    if others:
        logarithms = logarithms - np.mean([stats.logarithms(rounds[name]) for name in others], axis=0)
    return Mean.of(logarithms)


@dataclass(frozen=True)
class Disagreement:
    """A geometric mean in both files: how far the second is from the first."""

    group: str
    allocator: str
    against: str
    metric: str
    first: float
    second: float

    @property
    def change(self) -> float:
        return self.second / self.first - 1


def agreement(apart: list[Disagreement], per_cent: float) -> str:
    """A Markdown table, for each group and metric: the median and the largest difference, how many are above."""
    metrics = [metric for metric in stats.METRICS if any(one.metric == metric for one in apart)]
    heads = [
        f"difference: median, largest, how many above {per_cent:g} %",
        *(report.TITLES[metric] for metric in metrics),
    ]
    lines = report.table_head(heads)
    for group in sorted({one.group for one in apart}):
        cells = [group]
        for metric in metrics:
            found = [100 * abs(one.change) for one in apart if (one.group, one.metric) == (group, metric)]
            over = sum(change > per_cent for change in found)
            cells.append(
                f"{statistics.median(found):.1f} %, {max(found):.1f} %, {over} of {len(found)}" if found else "-"
            )
        lines.append(report.table_row(cells))
    return "\n".join(lines)


def disagreements(a: Results, b: Results) -> list[Disagreement]:
    """Every geometric mean that both files have, the one that differs most first."""
    common = [Disagreement(*key, ratio, b.geomeans[key]) for key, ratio in a.geomeans.items() if key in b.geomeans]
    return sorted(common, key=lambda one: -abs(one.change))
