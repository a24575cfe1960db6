"""A results document as Markdown: what a person reads, losses as plain as wins. The HTML page is in html/."""

from annex_lab import machine, stats
from annex_lab.allocators import is_ours

TITLES = {
    "cpu_s": "CPU time",
    "own_cpu_s": "the program's own CPU time",
    "score": "time",
    "peak_rss_kib": "peak resident set",
    "mean_rss_kib": "mean resident set",
    "minor_faults": "page faults",
}
MEANINGS = {
    "own_cpu_s": "Less what Annex's support thread used, which is part of the CPU time.",
    "mean_rss_kib": "Over the time that the program ran, by a look every two milliseconds.",
    "score": "Wall time, or time a unit of work where the program says how much it did.",
}
TABLED = stats.METRICS  # metrics whose geometric means are shown
LEVEL = 0.01  # a ratio within 1 % of 1 is called level


class Report:
    def __init__(self, document: dict):
        self.document = document
        self.allocators: list[str] = list(document["allocators"])
        self.programs: list[str] = list(document["programs"])
        self.samples = stats.Samples(document["results"])
        self._geomeans = {
            (row["group"], row["allocator"], row["against"], row["metric"]): stats.Geomean(**row)
            for row in document["geomeans"]
        }

    def subjects(self) -> list[str]:
        """Whom the tables are about: Annex's flavours, or else everybody but the yardstick."""
        ours = [name for name in self.allocators if is_ours(name)]
        return ours or [name for name in self.allocators if name != self.yardstick()]

    def yardstick(self) -> str:
        return "glibc" if "glibc" in self.allocators else self.allocators[0]

    def bases(self, subject: str) -> list[str]:
        """Whom a subject is compared with: everybody else, or the yardstick where no Annex is there."""
        ours = any(is_ours(name) for name in self.allocators)
        return [name for name in self.allocators if name != subject] if ours else [self.yardstick()]

    def groups(self) -> list[str]:
        return list(self.document["groups"])

    def geomean(self, group: str, allocator: str, against: str, metric: str) -> stats.Geomean | None:
        return self._geomeans.get((group, allocator, against, metric))

    def widest(self, *metrics: str) -> stats.Geomean | None:
        """Of the geometric means that the tables show, the one that is known least well; None where none is bounded."""
        shown = [
            self.geomean(group, subject, base, metric)
            for subject in self.subjects()
            for base in self.bases(subject)
            for group in self.groups()
            for metric in metrics
        ]
        bounded = [one for one in shown if one and one.half_width is not None]
        return max(bounded, key=lambda one: one.half_width, default=None)

    def nothing(self, program: str, allocator: str) -> str:
        """What stands where there is no figure."""
        failed = any((f["workload"], f["allocator"]) == (program, allocator) for f in self.document["failures"])
        return "failed" if failed else "-"

    def disturbed(self) -> int:
        return sum(row["disturbed"] for row in self.document["results"])

    def as_markdown(self) -> str:
        parts = [self._heading(), self._troubles()]
        for subject in self.subjects():
            table = self._geomean_table(subject)
            if table:
                parts += [table, self._behind_table(subject)]
        parts += [self._program_table(metric) for metric in stats.SHOWN]
        parts += [self._counts_table(), self._latency_table(), self._allocator_table()]
        return "\n\n".join(part for part in parts if part) + "\n"

    def _heading(self) -> str:
        document = self.document
        options = document["options"]
        lines = [
            "# Benchmark",
            "",
            f"Made by: `{options['command']}`",
            "",
            f"- machine: {machine.in_words(document['machine'])}",
            f"- {document['date']}, {rounds(document)} rounds, {len(document['results'])} samples, of which "
            f"{self.disturbed()} were disturbed by other processes to the last try",
        ]
        if options["cpus"]:
            lines.append(f"- programs bound to CPU {', '.join(map(str, options['cpus']))}")
        if document["interrupted"]:
            lines.append("- **interrupted**: only what was done by then is shown")
        return "\n".join(lines)

    def _troubles(self) -> str:
        document = self.document
        lines = [f"- {t['workload']} under {t['allocator']}: {t['why']}" for t in document["failures"]]
        lines += [f"- {t['workload']} was left out: {t['why']}" for t in document["skipped"]]
        lines += [f"- {t['allocator']} was left out: {t['why']}" for t in document["absent"]]
        return "\n".join(["## What failed or is missing", "", *lines]) if lines else ""

    def _geomean_table(self, subject: str) -> str:
        bases = self.bases(subject)
        lines = [
            f"## {subject} against each, geometric means",
            "",
            f"{subject} / the other, round by round: below 1 {subject} is better. "
            "In brackets the 95 % interval of the noise; a ratio whose interval holds 1 is no difference. Losses "
            "beyond it are bold.",
        ]
        any_row = False
        for metric in TABLED:
            lines += ["", f"### {TITLES[metric]}", ""]
            if metric in MEANINGS:
                lines += [MEANINGS[metric], ""]
            lines += table_head(["group", "programs", *(f"vs {base}" for base in bases)])
            for group in self.groups():
                found = [self.geomean(group, subject, base, metric) for base in bases]
                if not any(found):
                    continue
                any_row = True
                count = max(one.programs for one in found if one)
                lines.append(table_row([group, str(count), *(_ratio_cell(one) for one in found)]))
        return "\n".join(lines) if any_row else ""

    def _behind_table(self, subject: str) -> str:
        lines = [
            f"## Where {subject} is behind the best of the others, beyond the noise",
            "",
            f"{subject} / the best, round by round, and the 95 % interval. Every other program "
            "is level, better, or too noisy to tell.",
            "",
            *table_head(["", "program", "best", "ratio"]),
        ]
        for metric in TABLED:
            for one in stats.behind(self.samples, subject, metric):
                ratio = f"{one.ratio:.3f} [{one.low:.3f}, {one.high:.3f}]"
                lines.append(table_row([TITLES[metric], one.program, one.best, ratio]))
        return "\n".join(lines)

    def _program_table(self, metric: str) -> str:
        """Absolute medians of every allocator; the best of a row is bold, the spread over the rounds in brackets."""
        names = self.allocators
        lines = [
            f"## {TITLES[metric][0].upper()}{TITLES[metric][1:]} of each program",
            "",
            f"{MEANINGS.get(metric, '')} Median; in brackets (largest - smallest) / median over the rounds. The lowest "
            "of each row is bold.".strip(),
            "",
            *table_head(["program", *names]),
        ]
        any_row = False
        for program in self.programs:
            summaries = [self.samples.summary(program, name, metric) for name in names]
            if not any(summaries):
                continue
            best = min(summary.median for summary in summaries if summary)
            unit, factor = unit_of(metric, best)
            cells = [
                _median_cell(summary, factor, best) if summary else self.nothing(program, name)
                for name, summary in zip(names, summaries, strict=True)
            ]
            lines.append(table_row([f"{program}{unit and f', {unit}'}", *cells]))
            any_row = True
        return "\n".join(lines) if any_row else ""

    def _counts_table(self) -> str:
        rows = self.document.get("counts", [])
        lines = ["## Counted by callgrind, one run", "", *table_head(["program", "allocator", *COUNTED.values()])]
        lines += [
            table_row([row["workload"], row["allocator"], *(f"{row[key] / 1e6:,.2f} M" for key in COUNTED)])
            for row in rows
        ]
        return "\n".join(lines) if rows else ""

    def _latency_table(self) -> str:
        rows = self.document.get("latencies", [])
        head = ["program", "call", "allocator", "calls", "p50, ns", "p99, ns", "p99.9, ns", "longest, ns"]
        lines = ["## How long calls took, one run", "", *table_head(head)]
        for row in sorted(rows, key=lambda row: (row["workload"], row["call"] != "malloc")):
            figures = [f"{row[key]:,.0f}" for key in ("calls", "p50_ns", "p99_ns", "p999_ns", "max_ns")]
            lines.append(table_row([row["workload"], row["call"], row["allocator"], *figures]))
        return "\n".join(lines) if rows else ""

    def _allocator_table(self) -> str:
        lines = ["## The allocators", "", *table_head(["allocator", "version", "compiled", "ran with", "pages"])]
        for name, what in self.document["allocators"].items():
            settings = " ".join(f"`{key}={value}`" for key, value in what["env"].items())
            lines.append(table_row([name, what["version"], what["flags"], settings, what["page_policy"]]))
        return "\n".join(lines)


def rounds_done(document: dict) -> int:
    return max((row["round"] + 1 for row in document["results"]), default=0)


def rounds(document: dict) -> int:
    """That were asked for, or came to be: --until."""
    return max(document["options"]["rounds"], rounds_done(document))


COUNTED = {
    "instructions": "instructions",
    "l1d_misses": "L1 data misses",
    "l1i_misses": "L1 instruction misses",
    "ll_misses": "last-level misses",
}


def unit_of(metric: str, value: float) -> tuple[str, float]:
    """In which unit values such as this one are shown, and the factor that takes them there."""
    if metric in stats.MEMORY:
        return "MiB", 1 / 1024
    if metric == "minor_faults":
        return "", 1
    for unit, factor in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if value * factor >= 1:
            return unit, factor
    return "ns", 1e9


def table_row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def table_head(cells: list[str]) -> list[str]:
    return [table_row(cells), table_row(["---"] * len(cells))]


def _ratio_cell(found: stats.Ratio | None) -> str:
    if found is None:
        return "-"
    text = f"{found.ratio:.3f}"
    if found.ratio > 1 + LEVEL and not found.within_noise:
        text = f"**{text}**"
    return text if found.low is None else f"{text} [{found.low:.3f}, {found.high:.3f}]"


def _median_cell(summary: stats.Summary, factor: float, best: float) -> str:
    value = summary.median * factor
    text = f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    if summary.median == best:
        text = f"**{text}**"
    return f"{text} ({summary.spread * 100:.0f} %)"
