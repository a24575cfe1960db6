"""Two result files beside each other: what changed for an allocator, say between two versions of Annex.

The files come from two runs, between which the machine may have changed speed. So times are taken relative to the other
allocators that both files have: with R the geometric mean of theirs on the same program,

    change = (B's time / B's R) / (A's time / A's R)

Memory does not depend on the machine's mood and is compared as it is. Where the files share no other allocator, times
are, too, and the result says so.
"""

import json
import random
import statistics
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from annex_lab import allocators, stats
from annex_lab.report import FORMAT


class Unusable(Exception):
    """Not a result file, or nothing in common; the message says which."""


@dataclass(frozen=True)
class Results:
    name: str
    samples: stats.Samples
    versions: dict[str, str]

    def workloads(self) -> list[str]:
        return list(dict.fromkeys(workload for workload, _ in self.samples))

    def of(self, workload: str, allocator: str, metric: str) -> list[float] | None:
        found = self.samples.get((workload, allocator))
        return found[metric] if found else None


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
    try:
        content = json.loads(path.read_text())
    except OSError as why:
        raise Unusable(f"{path}: {why.strerror}") from None
    except ValueError:
        raise Unusable(f"{path}: not JSON") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT or "results" not in content:
        raise Unusable(f"{path}: not a result file of annex-lab bench --json (format {FORMAT})")
    samples: stats.Samples = defaultdict(lambda: defaultdict(list))
    for result in content["results"]:
        values = samples[result["workload"], result["allocator"]]
        values["cpu_s"].append(result["user_s"] + result["sys_s"])
        values["wall_s"].append(result["wall_s"])
        values["peak_rss_kib"].append(float(result["peak_rss_kib"]))
    return Results(path.name, samples, content.get("allocators", {}))


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
    others = [] if metric == "peak_rss_kib" else yardsticks(a, b, subject)
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
