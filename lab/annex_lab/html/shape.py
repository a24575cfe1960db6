"""The document as data frames: what was measured of each program under each allocator, and ratios with their noise.

A row of the report is a program, or a program with a number of threads where it ran with several.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from annex_lab import stats
from annex_lab.allocators import is_ours


@dataclass(frozen=True)
class Row:
    workload: str
    threads: int | None  # None: the program never ran to its end, so nobody knows
    label: str
    suite: str


@dataclass(frozen=True)
class Ratio:
    """An allocator / the yardstick: below 1 the allocator is better."""

    value: float
    low: float | None = None  # 95 % interval of the noise; none from fewer than three rounds
    high: float | None = None

    @property
    def noise(self) -> bool:
        return self.low is not None and self.low <= 1 <= self.high


def clean(content):
    """Without the control characters that a command of the user's own may hold and no page can show."""
    if isinstance(content, str):
        return content if content.isprintable() else "".join(c if c.isprintable() else " " for c in content)
    if isinstance(content, dict):
        return {clean(key): clean(value) for key, value in content.items()}
    return [clean(one) for one in content] if isinstance(content, list) else content


class Data:
    def __init__(self, document: dict):
        self.document = document
        columns = ["workload", "allocator", "threads", "round", "wall_s", "user_s", "sys_s", *stats.MEMORY]
        columns += ["minor_faults", "score", "disturbed", "support_cpu_s"]
        self.samples = pd.DataFrame(document["results"], columns=columns)
        stats.with_all_columns(self.samples)

    @cached_property
    def yardstick(self) -> str | None:
        """Whom the others are compared with: glibc, or else the first that is not ours."""
        names = self._names()
        if "glibc" in names:
            return "glibc"
        return next((name for name in names if not is_ours(name)), names[0] if names else None)

    def _names(self) -> list[str]:
        return list(dict.fromkeys([*self.document["allocators"], *self.samples["allocator"]]))

    @cached_property
    def allocators(self) -> list[str]:
        """The yardstick, then ours, then the others as the document has them."""
        return sorted(self._names(), key=lambda name: (name != self.yardstick, not is_ours(name)))

    @cached_property
    def ours(self) -> list[str]:
        return [name for name in self.allocators if is_ours(name)]

    @cached_property
    def rows(self) -> list[Row]:
        ran = self.samples.groupby("workload", sort=False)["threads"].unique()
        failed = [failure["workload"] for failure in self.document["failures"]]
        known = self.document["programs"]
        found = []
        for name in dict.fromkeys([*known, *ran.index, *failed]):
            suite = known.get(name, {}).get("suite", "own")
            threads = sorted(int(number) for number in ran.get(name, []))
            if not threads and name in failed:
                found.append(Row(name, None, name, suite))
            for number in threads:
                found.append(Row(name, number, f"{name}, {number} thr" if len(threads) > 1 else name, suite))
        return found

    @cached_property
    def _cells(self) -> dict[tuple[str, int, str], pd.DataFrame]:
        keys = ["workload", "threads", "allocator"]
        return {key: cell.sort_values("round") for key, cell in self.samples.groupby(keys, sort=False)}

    def cell(self, row: Row, allocator: str) -> pd.DataFrame | None:
        """The samples of a program under an allocator, by round."""
        return self._cells.get((row.workload, row.threads, allocator))

    def median(self, row: Row, allocator: str, metric: str) -> float | None:
        cell = self.cell(row, allocator)
        return None if cell is None else float(cell[metric].median())

    @cached_property
    def _statistics(self) -> dict[int, stats.Samples]:
        """By number of threads: with several, a program has rounds of each."""
        by_threads: dict[int, list[dict]] = {}
        for result in self.document["results"]:
            by_threads.setdefault(result["threads"], []).append(result)
        return {threads: stats.Samples(results) for threads, results in by_threads.items()}

    def ratio(self, row: Row, allocator: str, metric: str) -> Ratio | None:
        """Round by round, as in the geometric means; None where no round has both above zero."""
        if self.yardstick is None or row.threads is None:
            return None
        found = self._statistics[row.threads].ratio(row.workload, allocator, self.yardstick, metric)
        return found and Ratio(found.ratio, found.low, found.high)

    def failure(self, row: Row, allocator: str) -> str | None:
        """Why the program failed under the allocator, where it did."""
        for one in self.document["failures"]:
            same = (one["workload"], one["allocator"]) == (row.workload, allocator)
            if same and one.get("threads", str(row.threads)) == str(row.threads):
                return one["why"]
        return None

    @cached_property
    def geomeans(self) -> dict[tuple[str, str, str, str], dict]:
        keys = ("group", "allocator", "against", "metric")
        return {tuple(one[key] for key in keys): one for one in self.document["geomeans"]}

    @cached_property
    def counts(self) -> pd.DataFrame:
        """Callgrind's counts, by program and allocator; empty without --count."""
        found = pd.DataFrame(self.document.get("counts", []))
        return found.groupby(["workload", "allocator"], sort=False).median() if len(found) else found


def geometric_mean(values: list[float]) -> float | None:
    """Of those above zero; None where there are none."""
    kept = [math.log(value) for value in values if value > 0]
    return math.exp(sum(kept) / len(kept)) if kept else None
