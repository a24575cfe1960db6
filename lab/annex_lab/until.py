"""bench --until: whole rounds go on until the geometric means of CPU time are known as well as asked for.

That is until every 95 % interval of those that the report shows has at most that half-width, or until a bound.
"""

from dataclasses import dataclass

from annex_lab import intervals

METRIC = "cpu_s"
MOST_ROUNDS = 50


class Wrong(Exception):
    """Options that make no sense; the message says why."""


@dataclass(frozen=True)
class Until:
    half_width: float  # 0.02: 2 % of the ratio to either side
    at_most_rounds: int = MOST_ROUNDS


def of_options(half_width: float | None, at_most_rounds: int | None, rounds: int) -> Until | None:
    """None where it was not asked for; raises Wrong."""
    if half_width is None:
        if at_most_rounds is not None:
            raise Wrong("--at-most-rounds is for --until")
        return None
    if not 0 < half_width < 1:
        raise Wrong(f"--until is a ratio between 0 and 1, such as 0.02 for 2 %: not {half_width:g}")
    if rounds < intervals.ENOUGH:
        raise Wrong(f"--until needs --rounds {intervals.ENOUGH} or more, as fewer have no interval: not {rounds}")
    most = MOST_ROUNDS if at_most_rounds is None else at_most_rounds
    if most < rounds:
        raise Wrong(f"--at-most-rounds {most} is less than --rounds {rounds}")
    return Until(half_width, most)
