"""What the tests share: a context in a temporary folder, quick programs, and results documents made up of figures."""

import pytest
import simulator

from annex_lab import document, stats
from annex_lab.programs.model import Command, Context, Program


def pytest_terminal_summary(terminalreporter):
    """What was left out is said, also where every test that ran has passed."""
    skipped = terminalreporter.stats.get("skipped", [])
    if count := sum(str(simulator.WHY_NOT) in str(report.longrepr) for report in skipped if simulator.WHY_NOT):
        terminalreporter.write_line(f"not run: {count} tests that simulate: {simulator.WHY_NOT}")


@pytest.fixture
def context(tmp_path):
    return Context(
        data=tmp_path / "data", scratch=tmp_path / "scratch" / "run", workloads=tmp_path, scale=1.0, threads=2
    )


@pytest.fixture
def program():
    """Makes a program from a command line; `times` as in Command."""

    def make(*argv: str, name: str = "quick", suite: str = "single", times: int = 1, env=None, **more) -> Program:
        return Program(name, suite, "a test", lambda _context: Command(list(argv), env=env or {}, times=times), **more)

    return make


@pytest.fixture
def small_groups(monkeypatch):
    """Geometric means of groups of any size: tests have few programs."""
    monkeypatch.setattr(stats, "LEAST", 1)


MACHINE = {
    "cpu": "a test's",
    "cpus": 2,
    "memory_gib": 4,
    "kernel": "6.1",
    "libc": "glibc 2.36",
    "transparent_hugepage": "[madvise]",
    "overcommit": "0",
}
OPTIONS = {"command": "annex-lab bench", "suite": "single", "rounds": 3, "scale": 1.0, "threads": [2], "cpus": None}


def results_of(figures: dict[tuple[str, str], list[tuple[float, int]]]) -> list[dict]:
    """figures: (program, allocator) -> (CPU seconds, peak KiB) of each round."""
    return [
        {
            "workload": name,
            "allocator": allocator,
            "threads": 1,
            "round": round_,
            "wall_s": cpu_s * 1.1,
            "user_s": cpu_s * 0.75,
            "sys_s": cpu_s * 0.25,
            "peak_rss_kib": peak,
            "minor_faults": 10,
            "voluntary_switches": 1,
            "involuntary_switches": 2,
            "score": cpu_s * 1.1,
            "foreign_cpu_s": 0.0,
            "disturbed": False,
            "tries": 1,
        }
        for (name, allocator), rounds in figures.items()
        for round_, (cpu_s, peak) in enumerate(rounds)
    ]


def document_of(figures, programs: dict[str, dict] | None = None, versions: dict[str, str] | None = None) -> dict:
    """A results document; programs: name -> suite, kind, glibc_peak_rss_kib, where they matter."""
    names = list(dict.fromkeys(name for name, _ in figures))
    allocators = list(dict.fromkeys(allocator for _, allocator in figures))
    usual = {"suite": "single", "kind": "program", "what": "a test", "command": "true", "glibc_peak_rss_kib": 90000}
    return document.summarized(
        {
            "format": document.FORMAT,
            "date": "2026-11-22",
            "machine": MACHINE,
            "options": OPTIONS,
            "allocators": {
                name: {"version": (versions or {}).get(name, "1"), "flags": "-O3", "env": {}, "page_policy": "none"}
                for name in allocators
            },
            "programs": {name: {**usual, **(programs or {}).get(name, {})} for name in [*names, *(programs or {})]},
            "results": results_of(figures),
            "failures": [],
            "skipped": [],
            "absent": [],
            "interrupted": False,
        }
    )
