"""What a run has found out: the samples that count, and what failed or was left out."""

from dataclasses import dataclass, field

from annex_lab.sample import Sample


@dataclass
class Result:
    """One sample that counts."""

    workload: str
    allocator: str
    round: int
    threads: int
    sample: Sample
    foreign_s: float  # CPU that others used meanwhile
    disturbed: bool
    tries: int


@dataclass
class Outcome:
    results: list[Result] = field(default_factory=list)
    failures: list[dict[str, str]] = field(default_factory=list)
    skipped: list[dict[str, str]] = field(default_factory=list)
    counts: list[dict] = field(default_factory=list)  # as in the results document
    latencies: list[dict] = field(default_factory=list)
    glibc_peak_kib: dict[str, int] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def rounds(self) -> int:
        """That were begun."""
        return max((result.round + 1 for result in self.results), default=0)

    def has(self, workload: str, allocator: str, round_: int) -> bool:
        return any((r.workload, r.allocator, r.round) == (workload, allocator, round_) for r in self.results)

    def failed(self, workload: str, allocator: str) -> bool:
        return any((f["workload"], f["allocator"]) == (workload, allocator) for f in self.failures)
