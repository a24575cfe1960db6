"""Two result files beside each other: what changed for an allocator, say between two versions of Annex.

The files come from two runs, between which the machine may have changed speed. So times are taken relative to the other
allocators that both files have: with R the geometric mean of theirs on the same program,

    change = (B's time / B's R) / (A's time / A's R)

Memory does not depend on the machine's mood and is compared as it is. Where the files share no other allocator, times
are, too, and the result says so.
"""

import random
import statistics
from dataclasses import dataclass
from pathlib import Path

from annex_lab import allocators, document, report, stats
from annex_lab.document import Unusable


@dataclass(frozen=True)
class Results:
    name: str
    samples: stats.Samples
    versions: dict[str, str]
    geomeans: dict[tuple[str, str, str, str], float]  # (group, allocator, against, metric) -> ratio

    def workloads(self) -> list[str]:
        return self.samples.programs

    def of(self, workload: str, allocator: str, metric: str) -> list[float]:
        return self.samples.values(workload, allocator, metric)


@dataclass(frozen=True)
class Change:
    workload: str  # or a number of them, for the geometric mean
    ratio: float  # B / A: below 1, B is better
    low: float | None  # 95 % interval over resampled rounds
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
        {(g["group"], g["allocator"], g["against"], g["metric"]): g["ratio"] for g in content["geomeans"]},
    )


def subjects(a: Results, b: Results) -> list[str]:
    """The Annex flavours in both files, or else every allocator in both."""
    common = [name for name in a.versions if name in b.versions]
    if not common:
        raise Unusable(f"{a.name} and {b.name} have no allocator in common")
    return [name for name in common if allocators.is_ours(name)] or common


def yardsticks(a: Results, b: Results, subject: str) -> list[str]:
    """The other allocators that times are taken relative to: the same build in both files."""
    return [name for name in a.versions if name != subject and a.versions[name] == b.versions.get(name)]


def changes(a: Results, b: Results, subject: str, metric: str) -> list[Change]:
    """B against A on each program that both measured, and last their geometric mean."""
    others = [] if metric in stats.MEMORY else yardsticks(a, b, subject)
    stream = random.Random(1)
    found, all_draws = [], []
    for workload in (name for name in a.workloads() if name in b.workloads()):
        names = [n for n in others if a.of(workload, n, metric) and b.of(workload, n, metric)]
        mine = [run.of(workload, subject, metric) for run in (a, b)]
        if not all(mine) or min(map(min, mine)) <= 0:
            continue
        theirs = [[run.of(workload, name, metric) for name in names] for run in (a, b)]

        def change(median, mine=mine, theirs=theirs) -> float:
            relative = [
                median(own) / (stats.geometric_mean([max(median(one), 1e-9) for one in rest]) if rest else 1.0)
                for own, rest in zip(mine, theirs, strict=True)
            ]
            return relative[1] / relative[0]

        draws = _draws(change, stream) if min(map(len, mine)) >= stats.ENOUGH_ROUNDS else []
        all_draws.append(draws)
        found.append(Change(workload, change(statistics.median), *stats.interval(draws)))
    if found:
        joint = [stats.geometric_mean(list(row)) for row in zip(*all_draws, strict=True)] if all(all_draws) else []
        mean = stats.geometric_mean([one.ratio for one in found])
        found.append(Change(f"geometric mean of {len(found)}", mean, *stats.interval(joint)))
    return found


def _draws(change, stream: random.Random) -> list[float]:
    """The change, with every row of rounds drawn anew (with replacement)."""
    return [
        change(lambda values: statistics.median(stream.choices(values, k=len(values)))) for _ in range(stats.RESAMPLES)
    ]


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
