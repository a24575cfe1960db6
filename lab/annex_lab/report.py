"""The results as JSON (everything, for tools) and as Markdown (what a person reads: losses as plain as wins)."""

import dataclasses
from datetime import datetime, timezone

from annex_lab import machine, stats
from annex_lab.allocators import Allocator, is_ours
from annex_lab.bench import Outcome
from annex_lab.programs.model import Program

TITLES = {
    "cpu_s": "CPU time",
    "wall_s": "wall time",
    "peak_rss_kib": "peak resident set",
    "minor_faults": "page faults",
}
UNITS = {
    "cpu_s": (", ms", 1000),
    "wall_s": (", ms", 1000),
    "peak_rss_kib": (", MiB", 1 / 1024),
    "minor_faults": ("", 1),
}
FORMAT = 1  # of the JSON
LEVEL = 0.01  # a ratio within 1 % of 1 is called level


class Report:
    def __init__(self, outcome: Outcome, programs: list[Program], allocators: list[Allocator], options: dict):
        self.outcome, self.programs, self.options = outcome, programs, options
        self.allocators = {allocator.name: allocator for allocator in allocators}
        self.samples = stats.collect(outcome)
        self.groups = stats.groups(programs, outcome.glibc_peak_kib)
        self.geomeans = stats.geomeans(self.samples, self.groups, list(self.allocators))

    def subjects(self) -> list[str]:
        """Whom the tables are about: Annex's flavours, or else everybody but the yardstick."""
        ours = [name for name in self.allocators if is_ours(name)]
        return ours or [name for name in self.allocators if name != self.yardstick()]

    def yardstick(self) -> str:
        return "glibc" if "glibc" in self.allocators else next(iter(self.allocators))

    def bases(self, subject: str) -> list[str]:
        """Whom a subject is compared with: everybody else, or the yardstick where no Annex is there."""
        ours = any(is_ours(name) for name in self.allocators)
        return [name for name in self.allocators if name != subject] if ours else [self.yardstick()]

    def geomean(self, group: str, allocator: str, against: str, metric: str) -> stats.Geomean | None:
        for found in self.geomeans:
            if (found.group, found.allocator, found.against, found.metric) == (group, allocator, against, metric):
                return found
        return None

    def as_json(self) -> dict:
        peaks = self.outcome.glibc_peak_kib
        return {
            "format": FORMAT,
            "date": datetime.now(timezone.utc).date().isoformat(),
            "machine": machine.describe(),
            "options": self.options,
            "allocators": {name: allocator.version for name, allocator in self.allocators.items()},
            "programs": {
                p.name: {"suite": p.suite, "kind": p.kind, "what": p.what, "glibc_peak_rss_kib": peaks.get(p.name)}
                for p in self.programs
            },
            "results": [
                {
                    "workload": r.workload,
                    "allocator": r.allocator,
                    "threads": r.threads,
                    "round": r.round,
                    "wall_s": r.sample.wall_s,
                    "user_s": r.sample.user_s,
                    "sys_s": r.sample.sys_s,
                    "peak_rss_kib": r.sample.peak_rss_kib,
                    "minor_faults": r.sample.minor_faults,
                    "voluntary_switches": r.sample.voluntary_switches,
                    "involuntary_switches": r.sample.involuntary_switches,
                    "score": r.sample.score,
                    "foreign_cpu_s": round(r.foreign_s, 3),
                    "disturbed": r.disturbed,
                    "tries": r.tries,
                }
                for r in self.outcome.results
            ],
            "geomeans": [dataclasses.asdict(found) for found in self.geomeans],
            "groups": self.groups,
            "failures": self.outcome.failures,
            "skipped": self.outcome.skipped,
            "interrupted": self.outcome.interrupted,
        }

    def as_markdown(self) -> str:
        parts = [self._heading(), self._troubles()]
        for subject in self.subjects():
            table = self._geomean_table(subject)
            if table:
                parts += [table, self._behind_table(subject)]
        for metric in stats.SHOWN:
            parts.append(self._program_table(metric))
        return "\n\n".join(part for part in parts if part) + "\n"

    def _heading(self) -> str:
        m = machine.describe()
        versions = ", ".join(f"{name} {allocator.version}" for name, allocator in self.allocators.items())
        disturbed = sum(result.disturbed for result in self.outcome.results)
        return "\n".join(
            [
                "# Benchmark",
                "",
                f"Made by: `{self.options['command']}`",
                "",
                f"- machine: {m['cpu']}, {m['cpus']} CPUs, {m['memory_gib']} GiB, Linux {m['kernel']}, {m['libc']}, "
                f"transparent huge pages {m['transparent_hugepage']}",
                f"- allocators: {versions}",
                f"- {self.options['rounds']} rounds, medians; {len(self.outcome.results)} samples, "
                f"of which {disturbed} were disturbed by other processes to the last try",
                *(["- **interrupted**: only what was done by then is shown"] if self.outcome.interrupted else []),
            ]
        )

    def _troubles(self) -> str:
        lines = [f"- {t['workload']} under {t['allocator']}: {t['why']}" for t in self.outcome.failures]
        lines += [f"- {t['workload']} was left out: {t['why']}" for t in self.outcome.skipped]
        return "\n".join(["## What failed", "", *lines]) if lines else ""

    def _geomean_table(self, subject: str) -> str:
        header = ["group", "programs", *(f"vs {base}" for base in self.bases(subject))]
        lines = [
            f"## {subject} against each, geometric means",
            "",
            f"{subject} / the other: below 1 {subject} is better. In brackets the 95 % interval of the noise. "
            "Losses are bold.",
        ]
        any_row = False
        for metric in stats.METRICS:
            lines += ["", f"### {TITLES[metric]}", "", _row(header), _row(["---"] * len(header))]
            for group in self.groups:
                found = [self.geomean(group, subject, base, metric) for base in self.bases(subject)]
                if not any(found):
                    continue
                any_row = True
                count = max(one.programs for one in found if one)
                lines.append(_row([group, str(count), *(_geomean_cell(one) for one in found)]))
        return "\n".join(lines) if any_row else ""

    def _behind_table(self, subject: str) -> str:
        lines = [
            f"## Where {subject} is behind the best of the others, beyond the noise",
            "",
            f"{subject} / the best, the median over the rounds, and its 95 % interval. Every other program is level, "
            "better, or too noisy to tell.",
            "",
            _row(["", "program", "best", "ratio"]),
            _row(["---"] * 4),
        ]
        for metric in stats.METRICS:
            for one in stats.behind(self.samples, subject, metric):
                ratio = f"{one.ratio:.3f} [{one.low:.3f}, {one.high:.3f}]"
                lines.append(_row([TITLES[metric], one.program, one.best, ratio]))
        return "\n".join(lines)

    def _program_table(self, metric: str) -> str:
        """Absolute medians of every allocator; the best of a row is bold, the spread over the rounds in brackets."""
        names = list(self.allocators)
        unit, factor = UNITS[metric]
        lines = [
            f"## {TITLES[metric][0].upper()}{TITLES[metric][1:]} of each program{unit}",
            "",
            "Median; in brackets (largest - smallest) / median over the rounds. The lowest of each row is bold.",
            "",
            _row(["program", *names]),
            _row(["---"] * (len(names) + 1)),
        ]
        for program in self.programs:
            summaries = {
                n: stats.summarize(self.samples[program.name, n][metric])
                for n in names
                if (program.name, n) in self.samples
            }
            if not summaries:
                continue
            best = min(summary.median for summary in summaries.values())
            cells = [_median_cell(summaries.get(n), factor, best) for n in names]
            lines.append(_row([program.name, *cells]))
        return "\n".join(lines)


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _geomean_cell(found: stats.Geomean | None) -> str:
    if found is None:
        return "-"
    text = f"{found.ratio:.3f}"
    if found.ratio > 1 + LEVEL:
        text = f"**{text}**"
    return text if found.low is None else f"{text} [{found.low:.3f}, {found.high:.3f}]"


def _median_cell(summary: stats.Summary | None, factor: float, best: float) -> str:
    if summary is None:
        return "failed"
    value = summary.median * factor
    text = f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    if summary.median == best:
        text = f"**{text}**"
    return f"{text} ({summary.spread * 100:.0f} %)"
