"""A number of a figure: where it stands, how sure it is, and the paper's beside it."""

from dataclasses import dataclass

ABOVE = "above its bound"  # which is none, then
RATIO, SHARE, COUNT = "", "share", "count"  # what a number is; a share is between 0 and 1
BEHIND = "slower than in software"  # a queue, or a defect


@dataclass(frozen=True)
class Cell:
    panel: str
    row: str
    series: str
    ours: float | None
    seeds_low: float | None = None  # the seeds' lowest and highest
    seeds_high: float | None = None
    low_95: float | None = None  # of means: the interval over workloads
    high_95: float | None = None
    paper: float | None = None
    paper_from: str = ""  # the section or table that gives it
    bound: float | None = None  # the same where calls cost nothing beside the signals
    flag: str = ""
    note: str = ""  # why there is no number, or what it is a mean of
    unit: str = RATIO

    @property
    def deviation(self) -> float | None:
        """Ours / the paper's - 1."""
        return self.ours / self.paper - 1 if self.ours is not None and self.paper else None
