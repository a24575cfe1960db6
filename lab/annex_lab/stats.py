"""From samples to numbers: medians, spreads, ratios and their geometric means by group."""

import math
import random
import statistics
from collections import defaultdict
from dataclasses import dataclass

from annex_lab.bench import Outcome
from annex_lab.programs.model import Program

METRICS = ("cpu_s", "wall_s", "peak_rss_kib")
SHOWN = (*METRICS, "minor_faults")  # of each program; faults explain the others and are no aim of their own
SMALL_KIB = 20 * 1024  # a program whose peak under glibc is below this is a small one
RESAMPLES = 400
ENOUGH_ROUNDS = 3  # for an interval

Samples = dict[tuple[str, str], dict[str, list[float]]]  # (program, allocator) -> metric -> one value a round


@dataclass(frozen=True)
class Summary:
    median: float
    spread: float  # (largest - smallest) / median
    rounds: int


@dataclass(frozen=True)
class Geomean:
    group: str
    allocator: str
    against: str
    metric: str
    ratio: float  # allocator / against: below 1, the allocator is better
    low: float | None  # 95 % interval over resampled rounds; none from fewer than three rounds
    high: float | None
    programs: int


@dataclass(frozen=True)
class Behind:
    """A program on which an allocator is slower (or larger) than the best of the others, beyond the noise."""

    program: str
    metric: str
    best: str
    ratio: float  # allocator / best, round by round, the median
    low: float  # 95 % interval, above 1
    high: float


def collect(outcome: Outcome) -> Samples:
    samples: Samples = defaultdict(lambda: defaultdict(list))
    for result in outcome.results:
        for metric in SHOWN:
            samples[result.workload, result.allocator][metric].append(float(getattr(result.sample, metric)))
    return samples


def summarize(values: list[float]) -> Summary:
    median = statistics.median(values)
    return Summary(median, (max(values) - min(values)) / median if median else 0.0, len(values))


def geometric_mean(values: list[float]) -> float:
    return math.exp(sum(math.log(value) for value in values) / len(values))


def groups(programs: list[Program], glibc_peak_kib: dict[str, int]) -> dict[str, list[str]]:
    """Group name -> program names; empty groups and those that repeat an earlier one are left out."""

    def those(wanted) -> list[str]:
        return [program.name for program in programs if program.name in glibc_peak_kib and wanted(program)]

    def small(program: Program) -> bool:
        return glibc_peak_kib[program.name] < SMALL_KIB

    found = {}
    for suite in ("single", "multi"):
        found[suite] = those(lambda p, suite=suite: p.suite == suite)
        found[f"{suite}, real programs"] = those(lambda p, suite=suite: p.suite == suite and p.kind == "program")
        found[f"{suite}, workloads"] = those(lambda p, suite=suite: p.suite == suite and p.kind == "workload")
        found[f"{suite}, small"] = those(lambda p, suite=suite: p.suite == suite and small(p))
        found[f"{suite}, large"] = those(lambda p, suite=suite: p.suite == suite and not small(p))
    found["all"] = those(lambda _program: True)
    kept: dict[str, list[str]] = {}
    for name, members in found.items():
        if members and members not in kept.values():
            kept[name] = members
    return kept


def _resampled_medians(values: list[float], stream: random.Random) -> list[float]:
    if len(values) < ENOUGH_ROUNDS:
        return []
    return [statistics.median(stream.choices(values, k=len(values))) for _ in range(RESAMPLES)]


def interval(draws: list[float]) -> tuple[float | None, float | None]:
    """Between which 95 % of the draws lie; nothing where there are none."""
    if not draws:
        return None, None
    ordered = sorted(draws)
    return ordered[int(0.025 * len(ordered))], ordered[int(0.975 * len(ordered))]


def _interval_of_geomean(redrawn: dict, names: list[str], allocator: str, against: str, metric: str):
    """Where 95 % of the geometric means lie when the rounds are drawn anew; nothing where there are too few rounds."""
    pairs = [(redrawn[name, allocator][metric], redrawn[name, against][metric]) for name in names]
    if any(not a or not b for a, b in pairs):
        return None, None
    return interval([geometric_mean([max(a[i], 1e-9) / max(b[i], 1e-9) for a, b in pairs]) for i in range(RESAMPLES)])


def geomeans(samples: Samples, members: dict[str, list[str]], allocators: list[str]) -> list[Geomean]:
    """Every allocator against every other, by group and metric, over the programs that both finished.

    The interval says how far the geometric mean moves when rounds are drawn anew (with replacement) in each program: it
    covers the noise of measuring, not the choice of programs.
    """
    stream = random.Random(1)
    medians = {key: {m: statistics.median(values[m]) for m in METRICS} for key, values in samples.items()}
    redrawn = {key: {m: _resampled_medians(values[m], stream) for m in METRICS} for key, values in samples.items()}
    found = []
    for group, names in members.items():
        for allocator in allocators:
            for against in allocators:
                both = [n for n in names if (n, allocator) in samples and (n, against) in samples]
                if allocator == against or not both:
                    continue
                for metric in METRICS:
                    pairs = [(n, medians[n, allocator][metric], medians[n, against][metric]) for n in both]
                    if any(a <= 0 or b <= 0 for _, a, b in pairs):
                        continue
                    ratio = geometric_mean([a / b for _, a, b in pairs])
                    low, high = _interval_of_geomean(redrawn, both, allocator, against, metric)
                    found.append(Geomean(group, allocator, against, metric, ratio, low, high, len(both)))
    return found


def behind(samples: Samples, allocator: str, metric: str) -> list[Behind]:
    """Where `allocator` loses to the best of the others by more than the rounds' noise, the worst loss first."""
    stream = random.Random(1)
    found = []
    for program in {name: None for name, _ in samples}:
        others = {a: statistics.median(v[metric]) for (name, a), v in samples.items() if name == program}
        if others.pop(allocator, None) is None or not others:
            continue
        best = min(others, key=others.__getitem__)
        ours, theirs = samples[program, allocator][metric], samples[program, best][metric]
        ratios = [a / b for a, b in zip(ours, theirs, strict=False) if b > 0]
        low, high = interval(_resampled_medians(ratios, stream))
        if low is not None and low > 1:
            found.append(Behind(program, metric, best, statistics.median(ratios), low, high))
    return sorted(found, key=lambda one: -one.ratio)
