"""From samples to numbers: medians, spreads, paired ratios and their geometric means by group.

Two allocators are compared over the same rounds, in which they take turns within seconds of each other, so a machine
that changes its speed from minute to minute changes both. The ratio on a program is that of the geometric means of
either's fastest quarter of rounds: what else goes on can only slow a run down, and does so for some allocators more
than for others (docs/benchmarking.md has how far two runs agree). The 95 % interval is the bootstrap's: rounds are
drawn anew, with replacement, the same ones for both. It covers the noise of measuring, not the choice of programs.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd  # else loaded with the first samples: most commands have none, and take less time than that

MEMORY = ("peak_rss_kib", "mean_rss_kib")
METRICS = ("cpu_s", "score", *MEMORY)  # of which geometric means are taken
# Of each program: what explains the others and is no aim itself, too.
SHOWN = ("cpu_s", "own_cpu_s", "score", *MEMORY, "minor_faults")
SMALL_KIB = 20 * 1024  # a program whose peak under glibc is below this is a small one
LEAST = 7  # programs in a group, or a mean of them says no more than they do one by one
RESAMPLES = 400
QUARTER = 4
ENOUGH_ROUNDS = 3  # for an interval


@dataclass(frozen=True)
class Summary:
    median: float
    spread: float  # (largest - smallest) / median
    rounds: int


@dataclass(frozen=True)
class Ratio:
    """allocator / another, below 1 the allocator is better."""

    ratio: float
    low: float | None  # 95 % interval over resampled rounds; none from fewer than three rounds
    high: float | None

    @property
    def within_noise(self) -> bool:
        return self.low is not None and self.high is not None and self.low <= 1 <= self.high


@dataclass(frozen=True)
class Geomean(Ratio):
    group: str
    allocator: str
    against: str
    metric: str
    programs: int


@dataclass(frozen=True)
class Behind(Ratio):
    """A program on which an allocator is slower (or larger) than the best of the others, beyond the noise."""

    program: str
    metric: str
    best: str


class Samples:
    """All samples of a run: for each metric a table with a row a (program, round) and a column an allocator."""

    def __init__(self, results: list[dict]):
        import pandas as pd

        table = pd.DataFrame(results)
        self.programs: list[str] = []
        self.allocators: list[str] = []
        self._by_metric: dict[str, dict[str, pd.DataFrame]] = {}
        if table.empty:
            return
        with_all_columns(table)
        self.programs = list(dict.fromkeys(table["workload"]))
        self.allocators = list(dict.fromkeys(table["allocator"]))
        for metric in dict.fromkeys([*METRICS, *SHOWN]):
            wide = table.pivot_table(index=["workload", "round"], columns="allocator", values=metric)
            self._by_metric[metric] = {name: rows.droplevel(0) for name, rows in wide.groupby(level="workload")}

    def rounds(self, program: str, metric: str) -> pd.DataFrame:
        """Rows: rounds, columns: allocators; a missing sample is NaN."""
        import pandas as pd

        return self._by_metric.get(metric, {}).get(program, pd.DataFrame())

    def values(self, program: str, allocator: str, metric: str) -> list[float]:
        rounds = self.rounds(program, metric)
        return rounds[allocator].dropna().tolist() if allocator in rounds else []

    def summary(self, program: str, allocator: str, metric: str) -> Summary | None:
        values = self.values(program, allocator, metric)
        return summarize(values) if values else None

    def ratio(self, program: str, allocator: str, against: str, metric: str) -> Ratio | None:
        """On one program; None where they have no round in common."""
        rounds = self.rounds(program, metric)
        if allocator not in rounds or against not in rounds:
            return None
        pairs = _Pairs(_logarithms(rounds[[allocator, against]]))
        return None if math.isnan(pairs.point[0, 1]) else Ratio(*_bounds(pairs.point[0, 1], pairs.draws(0, 1)))


def with_all_columns(table: pd.DataFrame) -> None:
    """Adds the CPU time in all; the program's own, less the support thread's, where one has used any; and what older
    documents lack, as missing."""
    import pandas as pd

    table["cpu_s"] = table["user_s"] + table["sys_s"]
    support = table.get("support_cpu_s", pd.Series(0.0, table.index)).fillna(0.0)
    table["own_cpu_s"] = table["cpu_s"] - support if support.any() else math.nan
    table["mean_rss_kib"] = table.get("mean_rss_kib", pd.Series(math.nan, table.index)).astype(float)


def summarize(values: list[float]) -> Summary:
    median = statistics.median(values)
    return Summary(median, (max(values) - min(values)) / median if median else 0.0, len(values))


def geometric_mean(values: list[float]) -> float:
    return math.exp(sum(math.log(value) for value in values) / len(values))


def _logarithms(rounds: pd.DataFrame) -> np.ndarray:
    values = rounds.to_numpy(dtype=float)
    return np.log(np.where(values > 0, values, np.nan))


def fastest(rounds: np.ndarray) -> np.ndarray:
    """The mean of the lowest quarter along the first axis."""
    return np.sort(rounds, axis=0)[: math.ceil(len(rounds) / QUARTER)].mean(axis=0)


class _Pairs:
    """Logarithms of the ratios on one program, every allocator (row) against every other (column); NaN: no ratio."""

    def __init__(self, logarithms: np.ndarray):
        columns = logarithms.shape[1]
        self.point = np.full((columns, columns), np.nan)
        self.all_draws = np.full((RESAMPLES, columns, columns), np.nan)  # resample x allocator x against
        missing = np.isnan(logarithms)
        self._enter(logarithms, np.flatnonzero(~missing.any(axis=0)))
        for one in np.flatnonzero(missing.any(axis=0)):  # only the rounds that both have
            for other in range(columns):
                self._enter(logarithms[~missing[:, one] & ~missing[:, other]], np.array([one, other]))

    def _enter(self, rounds: np.ndarray, which: np.ndarray) -> None:
        """The ratios of those columns, each against each, from these rounds."""
        values = rounds[:, which]
        if not values.size:
            return
        rows, against = np.ix_(which, which)
        means = fastest(values)
        self.point[rows, against] = means[:, None] - means[None, :]
        count = len(values)
        if count >= ENOUGH_ROUNDS:
            drawn = np.random.default_rng(1).integers(count, size=(count, RESAMPLES))
            means = fastest(values[drawn])
            self.all_draws[:, rows, against] = means[:, :, None] - means[:, None, :]

    def draws(self, allocator: int, against: int) -> np.ndarray:
        return self.all_draws[:, allocator, against]


def interval(draws) -> tuple[float | None, float | None]:
    """Between which 95 % of the draws lie; nothing where there are none or one of them is missing."""
    drawn = np.asarray(draws, dtype=float)
    if not drawn.size or np.isnan(drawn).any():
        return None, None
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def _bounds(point: float, draws: np.ndarray) -> tuple[float, float | None, float | None]:
    """Logarithms in; the ratio and its interval out."""
    low, high = interval(draws)
    return (math.exp(point), *(None if bound is None else math.exp(bound) for bound in (low, high)))


def groups(programs: dict[str, dict]) -> dict[str, list[str]]:
    """Group name -> program names, of the programs as in the results document; those that ran under glibc are in.

    Groups of fewer than LEAST and those that repeat an earlier one are left out; "all" is always there.
    """
    ran = {name: program for name, program in programs.items() if program["glibc_peak_rss_kib"] is not None}

    def those(**wanted: str) -> list[str]:
        return [name for name, program in ran.items() if all(program[key] == value for key, value in wanted.items())]

    def small(names: list[str], yes: bool) -> list[str]:
        return [name for name in names if (ran[name]["glibc_peak_rss_kib"] < SMALL_KIB) == yes]

    found = {}
    for suite in ("single", "multi"):
        found[suite] = those(suite=suite)
        found[f"{suite}, real programs"] = those(suite=suite, kind="program")
        found[f"{suite}, workloads"] = those(suite=suite, kind="workload")
        found[f"{suite}, small"] = small(found[suite], True)
        found[f"{suite}, large"] = small(found[suite], False)
    for threads in sorted({name.rpartition("/")[2] for name in ran if name.rpartition("/")[2].isdecimal()}, key=int):
        found[f"{threads} threads"] = [name for name in ran if name.endswith(f"/{threads}")]
    found["all"] = list(ran)
    kept: dict[str, list[str]] = {}
    for name, members in found.items():
        if members and (len(members) >= LEAST or name == "all") and members not in kept.values():
            kept[name] = members
    return kept


def geomeans(samples: Samples, members: dict[str, list[str]]) -> list[Geomean]:
    """Every allocator against every other, by group and metric, over the programs that both finished."""
    names = samples.allocators
    found = []
    for metric in METRICS:
        pairs = {
            program: _Pairs(_logarithms(samples.rounds(program, metric).reindex(columns=names)))
            for program in samples.programs
        }
        for group, programs in members.items():
            here = [pairs[program] for program in programs if program in pairs]
            if not here:
                continue
            points = np.array([one.point for one in here])
            draws = np.array([one.all_draws for one in here])
            both = ~np.isnan(points)
            for i, allocator in enumerate(names):
                for j, against in enumerate(names):
                    mine = both[:, i, j]
                    if i == j or not mine.any():
                        continue
                    mean = _bounds(points[mine, i, j].mean(), draws[mine, :, i, j].mean(axis=0))
                    found.append(Geomean(*mean, group, allocator, against, metric, int(mine.sum())))
    return found


def behind(samples: Samples, allocator: str, metric: str) -> list[Behind]:
    """Where `allocator` loses to the best of the others by more than the rounds' noise, the worst loss first."""
    found = []
    for program in samples.programs:
        others = {name: samples.summary(program, name, metric) for name in samples.allocators if name != allocator}
        medians = {name: summary.median for name, summary in others.items() if summary}
        if not medians or not samples.summary(program, allocator, metric):
            continue
        best = min(medians, key=medians.__getitem__)
        ratio = samples.ratio(program, allocator, best, metric)
        if ratio and ratio.low is not None and ratio.low > 1:
            found.append(Behind(ratio.ratio, ratio.low, ratio.high, program, metric, best))
    return sorted(found, key=lambda one: -one.ratio)
