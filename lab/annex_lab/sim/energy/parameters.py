"""Parameters with their ranges (parameters.csv), and values drawn for all of them at once.

A quantity is an array here: its first element is the nominal one, made of all nominal parameters; the others are what
it is with each set that was drawn. So a formula is written once, and gives the value and its uncertainty. Two runs that
are computed from the same Drawn share each parameter, and what is common to both cancels in their ratio.
"""

import csv
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy

from annex_lab import intervals

FILE = Path(__file__).with_name("parameters.csv")
DRAWS = 4000

Quantity = numpy.ndarray  # [0]: nominal
Drawn = Mapping[str, Quantity]


class UnknownParameter(Exception):
    pass


@dataclass(frozen=True)
class Parameter:
    name: str
    value: float
    low: float
    high: float
    unit: str
    status: str  # published, computed from published figures, or assumed
    source: str


@functools.cache
def parameters() -> dict[str, Parameter]:
    with FILE.open() as lines:
        rows = [
            Parameter(
                row["name"],
                *(float(row[at]) for at in ("value", "low", "high")),
                row["unit"],
                row["status"],
                row["source"],
            )
            for row in csv.DictReader(lines)
        ]
    return {row.name: row for row in rows}


def draw(fixed: Mapping[str, float] | None = None, draws: int = DRAWS, seed: int = 1) -> Drawn:
    """Half of each parameter's draws are below its value, half above, evenly in the logarithm up to the range's ends.

    Those named in `fixed` have that value in all draws. Each parameter's draws depend on seed and name only.
    """
    fixed = fixed or {}
    if unknown := set(fixed) - set(parameters()):
        raise UnknownParameter(
            f"no parameter is called {', '.join(sorted(unknown))}; they are: {', '.join(parameters())}"
        )
    drawn = {}
    for name, of in parameters().items():
        if name in fixed:
            drawn[name] = numpy.full(draws + 1, fixed[name])
            continue
        where = numpy.random.default_rng([seed, *name.encode()]).uniform(-1, 1, draws)
        ends = numpy.where(where < 0, of.value / of.low, of.high / of.value)
        drawn[name] = of.value * numpy.concatenate(([1.0], ends**where))
    return drawn


@dataclass(frozen=True)
class Estimate:
    value: float
    low: float
    high: float


def estimate(of: Quantity) -> Estimate:
    low, high = intervals.of_draws(of[1:]) if len(of) > 1 else (of[0], of[0])
    return Estimate(float(of[0]), float(min(low, of[0])), float(max(high, of[0])))
