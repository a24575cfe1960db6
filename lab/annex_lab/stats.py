"""From samples to numbers: medians, spreads, paired ratios and their geometric means by group.

Two allocators are compared round by round: in each they take turns within seconds of each other, so a machine that
changes its speed from minute to minute changes both. The ratio on a program is the geometric mean of the rounds'
ratios, and its 95 % interval is Student's t of their logarithms (intervals.py); a group's is the geometric mean of its
programs'. It covers the noise of measuring, not the choice of programs.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from annex_lab import intervals
from annex_lab.intervals import Mean

if TYPE_CHECKING:
    import pandas as pd  # else loaded with the first samples: most commands have none, and take less time than that

MEMORY = ("peak_rss_kib", "mean_rss_kib")
METRICS = ("cpu_s", "score", *MEMORY)  # of which geometric means are taken
# Of each program: what explains the others and is no aim itself, too.
SHOWN = ("cpu_s", "own_cpu_s", "score", *MEMORY, "minor_faults")
SMALL_KIB = 20 * 1024  # a program whose peak under glibc is below this is a small one
LEAST = 7  # programs in a group, or a mean of them says no more than they do one by one


@dataclass(frozen=True)
class Summary:
    median: float
    spread: float  # (largest - smallest) / median
    rounds: int


@dataclass(frozen=True)
class Ratio:
    """allocator / another, below 1 the allocator is better."""

    ratio: float
    low: float | None  # 95 % interval of the noise; none from fewer than three rounds
    high: float | None

    @property
    def within_noise(self) -> bool:
        return self.low is not None and self.high is not None and self.low <= 1 <= self.high

    @property
    def half_width(self) -> float | None:
        """Of the interval, as a share of the ratio: 0.02 where it ends 2 % above; the inverse ratio has the same."""
        return None if self.low is None or self.high is None else math.sqrt(self.high / self.low) - 1


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
        mean = Mean.of(logarithms(rounds[allocator]) - logarithms(rounds[against]))
        return None if math.isnan(mean.value) else Ratio(*as_ratio(mean))


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


def logarithms(rounds: pd.DataFrame | pd.Series) -> np.ndarray:
    """NaN for what is missing, or has no logarithm."""
    values = rounds.to_numpy(dtype=float)
    return np.log(np.where(values > 0, values, np.nan))


def pairs(rounds: pd.DataFrame) -> Mean:
    """The logarithms of one program's ratios, every allocator (row) over every other (column), of common rounds."""
    values = logarithms(rounds)
    return Mean.of(values[:, :, None] - values[:, None, :])


def as_ratio(mean: Mean) -> tuple[float, float | None, float | None]:
    """A ratio and its interval, of a logarithm's."""
    ends = [float(end) for end in (mean.value, *mean.bounds())]
    return (math.exp(ends[0]), *(None if math.isnan(end) else math.exp(end) for end in ends[1:]))


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
        by_program = {
            program: pairs(samples.rounds(program, metric).reindex(columns=names)) for program in samples.programs
        }
        for group, programs in members.items():
            here = [by_program[program] for program in programs if program in by_program]
            if not here:
                continue
            mean = intervals.mean_of(here)
            count = (~np.isnan([one.value for one in here])).sum(axis=0)
            for i, allocator in enumerate(names):
                for j, against in enumerate(names):
                    if i != j and count[i, j]:
                        one = Mean(mean.value[i, j], mean.variance[i, j], mean.degrees[i, j])
                        found.append(Geomean(*as_ratio(one), group, allocator, against, metric, int(count[i, j])))
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
