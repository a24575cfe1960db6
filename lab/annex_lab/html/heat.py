"""The tables of ratios: cells with their text, colour and explanation, programs or groups by allocators.

The yardstick's own column has its absolute values; everybody else's has ratios to them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from annex_lab import stats
from annex_lab.html import palette, text
from annex_lab.html.shape import Data, Ratio, Row, geometric_mean
from annex_lab.report import MEANINGS


@dataclass(frozen=True)
class Cell:
    text: str
    kind: str = ""  # the CSS class
    tip: str = ""
    value: float | None = None  # to sort by
    small: str = ""


@dataclass(frozen=True)
class Line:
    label: str
    cells: list[Cell]
    tip: str = ""


@dataclass
class Section:
    title: str  # empty: no heading above the lines
    lines: list[Line] = field(default_factory=list)


@dataclass
class Table:
    corner: str
    heads: list[str]  # allocators
    sections: list[Section]

    @property
    def empty(self) -> bool:
        return not any(section.lines for section in self.sections)


@dataclass(frozen=True)
class Metric:
    name: str
    title: str
    note: str
    show: Callable[[float], str]

    @property
    def short(self) -> str:
        """Inside a sentence."""
        return self.title if self.title.startswith("CPU") else self.title[0].lower() + self.title[1:]


SCORE_NOTE = "Seconds for a unit of work where the program says how much it did, else wall-clock time."
METRICS = {
    "cpu_s": Metric("cpu_s", "CPU time", "User and system time of all threads.", text.seconds),
    "own_cpu_s": Metric("own_cpu_s", "CPU time of the program's own", MEANINGS["own_cpu_s"], text.seconds),
    "score": Metric("score", "Time for the work", SCORE_NOTE, text.seconds),
    "peak_rss_kib": Metric("peak_rss_kib", "Peak memory", "The most that was resident at once.", text.kib),
    "mean_rss_kib": Metric("mean_rss_kib", "Mean memory", MEANINGS["mean_rss_kib"], text.kib),
    "minor_faults": Metric(
        "minor_faults",
        "Page faults",
        "Minor ones: the kernel's work for memory touched for the first time. They explain time and memory.",
        text.count,
    ),
}
COUNTS = {
    "instructions": Metric("instructions", "Instructions", "", text.count),
    "l1i_misses": Metric("l1i_misses", "Instruction cache misses (L1)", "", text.count),
    "l1d_misses": Metric("l1d_misses", "Data cache misses (L1)", "", text.count),
    "ll_misses": Metric("ll_misses", "Last-level cache misses", "", text.count),
}
SUITES = {"single": "One thread allocates", "multi": "Several threads allocate", "own": "The user's own command"}
NOTHING = Cell("\N{EN DASH}", "none", "not measured")


def ratio_cell(ratio: Ratio, tip: str, digits: int = 2, small: str = "", mark: str = "") -> Cell:
    shown = text.ratio(ratio.value, digits) + mark
    if ratio.low is not None:
        tip += f"\n95 % interval {text.ratio(ratio.low, 3)} to {text.ratio(ratio.high, 3)}"
    if ratio.noise:
        return Cell(f"~{shown}", "noise", tip + ": a difference within the noise", ratio.value, small)
    return Cell(shown, palette.step(ratio.value), tip, ratio.value, small)


def geomean_cell(data: Data, group: str, allocator: str, against: str, metric: str) -> Cell:
    one = data.geomeans.get((group, allocator, against, metric))
    if one is None:
        return NOTHING
    ratio = Ratio(one["ratio"], one["low"], one["high"])
    whole = len(data.document["groups"].get(group, []))
    small = [] if ratio.low is None else [f"{text.ratio(ratio.low)}\N{EN DASH}{text.ratio(ratio.high)}"]
    if one["programs"] < whole:
        small.append(f"{one['programs']} of {whole}")
    tip = f"{allocator} / {against}, geometric mean of {text.plural(one['programs'], 'program')}"
    return ratio_cell(ratio, tip, 3, ", ".join(small))


def geomean_table(data: Data, cell: Callable[[str, str, str], Cell], heads: list[str]) -> Table:
    """Groups by allocators, a section a metric; cell(group, head, metric)."""
    sections = []
    for metric in stats.METRICS:
        section = Section(METRICS[metric].title)
        for group, members in data.document["groups"].items():
            cells = [cell(group, head, metric) for head in heads]
            if any(one is not NOTHING for one in cells):
                section.lines.append(Line(group, cells, text.plural(len(members), "program")))
        if section.lines:
            sections.append(section)
    return Table("group", heads, sections)


def against_yardstick(data: Data) -> Table:
    heads = [name for name in data.allocators if name != data.yardstick]
    return geomean_table(data, lambda group, head, m: geomean_cell(data, group, head, data.yardstick, m), heads)


def against_each(data: Data, subject: str) -> Table:
    heads = [name for name in data.allocators if name != subject]
    return geomean_table(data, lambda group, head, m: geomean_cell(data, group, subject, head, m), heads)


def program_cell(data: Data, row: Row, allocator: str, metric: Metric) -> Cell:
    why, cell = data.failure(row, allocator), data.cell(row, allocator)
    if cell is None:
        return Cell("failed", "failed", why) if why else NOTHING
    values = cell[metric.name]
    median = float(values.median())
    tip = f"{row.label} under {allocator}\nmedian of {len(values)}: {metric.show(median)}"
    if len(values) > 1:
        tip += f" ({metric.show(float(values.min()))} to {metric.show(float(values.max()))})"
    if why:
        tip += f"\nfailed, too: {why}"
    mark = "†" if why else ""
    ratio = None if allocator == data.yardstick else data.ratio(row, allocator, metric.name)
    if ratio is None:
        return Cell(metric.show(median) + mark, "absolute", tip, median)
    return ratio_cell(ratio, tip, mark=mark)


def _by_suite(data: Data, cell: Callable[[Row, str], Cell], rows: list[Row]) -> list[Section]:
    found = []
    for suite in dict.fromkeys(row.suite for row in rows):
        lines = [
            Line(row.label, [cell(row, name) for name in data.allocators], _about(data, row))
            for row in rows
            if row.suite == suite
        ]
        found.append(Section(SUITES.get(suite, suite), lines))
    if len(found) == 1:
        found[0].title = ""
    return found


def _about(data: Data, row: Row) -> str:
    return data.document["programs"].get(row.workload, {}).get("what", "")


def _mean_section(data: Data, sections: list[Section]) -> list[Section]:
    """Geometric means down the columns: for what has no geometric means in the document."""
    cells = []
    for column, name in enumerate(data.allocators):
        these = [line.cells[column] for section in sections for line in section.lines]
        ratios = [one.value for one in these if one.kind not in ("absolute", "failed", "none")]
        mean = geometric_mean(ratios)
        small = f"{len(ratios)} programs" if mean and len(ratios) < len(these) else ""
        known = mean and name != data.yardstick
        cells.append(Cell(text.ratio(mean, 3), palette.step(mean), "", mean, small) if known else Cell("", "absolute"))
    several = sum(len(section.lines) for section in sections) > 1 and len(cells) > 1
    return [Section("All of them", [Line("geometric mean", cells)])] if several else []


def program_table(data: Data, metric: Metric) -> Table:
    sections = _by_suite(data, lambda row, name: program_cell(data, row, name, metric), data.rows)
    if metric.name == "minor_faults":
        sections += _mean_section(data, sections)
    return Table("program", data.allocators, sections)


def count_cell(data: Data, row: Row, allocator: str, metric: Metric) -> Cell:
    values = data.counts[metric.name]
    if (row.workload, allocator) not in values.index:
        why = data.failure(row, allocator)
        return Cell("failed", "failed", why) if why else NOTHING
    value = float(values[row.workload, allocator])
    base = float(values.get((row.workload, data.yardstick), 0))
    tip = f"{row.workload} under {allocator}: {metric.show(value)}"
    if allocator == data.yardstick or base <= 0:
        return Cell(metric.show(value), "absolute", tip, value)
    return ratio_cell(Ratio(value / base), tip)


def count_table(data: Data, metric: Metric) -> Table:
    counted = dict.fromkeys(workload for workload, _ in data.counts.index)
    suites = {name: program["suite"] for name, program in data.document["programs"].items()}
    rows = [Row(name, None, name, suites.get(name, "own")) for name in counted]
    sections = _by_suite(data, lambda row, name: count_cell(data, row, name, metric), rows)
    return Table("program", data.allocators, sections + _mean_section(data, sections))
