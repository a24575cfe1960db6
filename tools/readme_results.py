"""Writes the quick suite's tables into the README, between its two marks.

make bench
.venv/bin/python tools/readme_results.py build/bench/report/results.json
"""

import re
import sys
from pathlib import Path

from annex_lab import document, stats
from annex_lab.report import Report

README = Path(__file__).resolve().parent.parent / "README.md"
BEGIN, END = "<!-- tools/readme_results.py begin -->", "<!-- end -->"
METRICS = {"cpu_s": "CPU time", "score": "time", "peak_rss_kib": "peak resident set"}


def geometric_means(report: Report, subject: str, group: str) -> str:
    others = [name for name in report.allocators if not name.startswith("annex")]
    lines = [f"| {subject}, {group} | " + " | ".join(others) + " |", "|---|" + "---|" * len(others)]
    for metric, title in METRICS.items():
        cells = []
        for other in others:
            mean = report.geomean(group, subject, other, metric)
            text = f"{mean.ratio:.2f} [{mean.low:.2f}, {mean.high:.2f}]"
            cells.append(f"**{text}**" if mean.ratio > 1 and not mean.within_noise else text)
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def shown(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def each_program(report: Report, metric: str, title: str, factor: float) -> str:
    lines = [f"| {title} | " + " | ".join(report.allocators) + " |", "|---|" + "---:|" * len(report.allocators)]
    for program in report.programs:
        found = {name: report.samples.summary(program, name, metric) for name in report.allocators}
        best = min(one.median for one in found.values() if one)
        cells = []
        for one in found.values():
            text = shown(one.median * factor) if one else "–"
            cells.append(f"**{text}**" if one and one.median == best else text)
        lines.append(f"| {program} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def losses(report: Report, metric: str) -> str:
    """What Annex loses to the best of the others, beyond the noise: by solo where it loses, else by shared."""
    behind = {
        one.program: one
        for subject in ("annex", "annex-solo")
        for one in stats.behind(report.samples, subject, metric)
        if not one.best.startswith("annex")
    }
    worst_first = sorted(behind.values(), key=lambda one: -one.ratio)
    return ", ".join(f"{one.program} {one.ratio:.2f} of {one.best}'s" for one in worst_first) or "none"


def section(report: Report) -> str:
    parts = [
        geometric_means(report, "annex-solo", "single"),
        geometric_means(report, "annex", "multi"),
        "Each program, medians; the lowest of each row is bold, and solo is for the single-threaded ones:",
        each_program(report, "cpu_s", "CPU time, ms", 1e3),
        each_program(report, "peak_rss_kib", "peak, MiB", 1 / 1024),
        "Losses to the best of the others, beyond the noise. CPU time: "
        + losses(report, "cpu_s")
        + ". Peak resident set: "
        + losses(report, "peak_rss_kib")
        + ".",
    ]
    return "\n\n".join(parts)


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        report = Report(document.load(Path(sys.argv[1])))
    except document.Unusable as why:
        sys.exit(str(why))
    text = README.read_text()
    between = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    replaced, count = between.subn(lambda _: f"{BEGIN}\n\n{section(report)}\n\n{END}", text)
    if count != 1:
        sys.exit(f"{README} lacks the marks {BEGIN} and {END}")
    README.write_text(replaced)


if __name__ == "__main__":
    main()
