"""What the terminal shows: a progress bar with the time left, and the tables at the end."""

import time
from collections.abc import Iterator

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from annex_lab import compare, machine, stats, until
from annex_lab.bench import Listener
from annex_lab.report import LEVEL, TABLED, TITLES, Report, rounds_done

UNKNOWN_S = 1.0  # what a run is taken to last until the first one is over
MOST_COLUMNS = 9  # of other allocators beside each program
OVERHEAD_S = 0.25  # waiting for quiet, touching memory, reading the output
WIDE = 0.02  # of an interval's half-width: above it, more rounds would show more


class Ledger:
    """Work ahead and behind in expected seconds, so that long programs weigh more than short ones."""

    def __init__(self, programs: list[str], runs_each: int):
        self.runs_left = dict.fromkeys(programs, runs_each)
        self.cost = dict.fromkeys(programs, UNKNOWN_S)
        self.behind = 0.0

    @property
    def ahead(self) -> float:
        return sum(runs * self.cost[name] for name, runs in self.runs_left.items())

    def expect(self, program: str, seconds: float) -> None:
        self.cost[program] = seconds + OVERHEAD_S

    def done(self, program: str, runs: int) -> None:
        self.runs_left[program] -= runs
        self.behind += runs * self.cost[program]

    def more(self, program: str, runs: int) -> None:
        self.runs_left[program] += runs


def watched(console: Console, work: Iterator[str], total: int, heading: str = "") -> None:
    """Does the work, which says what comes next, with a bar on a terminal; raises KeyboardInterrupt after Ctrl-C."""
    columns = (TextColumn("{task.description:44}"), BarColumn(), TextColumn("{task.percentage:3.0f} %"))
    times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(*columns, *times, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(heading, total=total)
        for done, what in enumerate(work):
            bar.update(task, completed=done, description=what)


class Bar(Listener):
    """On a terminal: one line with the time left."""

    def __init__(self, console: Console, programs: list[str], runs_each: int):
        self.ledger = Ledger(programs, runs_each)
        self.progress = Progress(
            TextColumn("{task.description:40}"),
            BarColumn(),
            TextColumn("{task.percentage:3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
        )
        self.task = self.progress.add_task("", total=self.ledger.ahead)

    def __enter__(self):
        self.progress.start()
        return self

    def __exit__(self, *_error):
        self.progress.stop()

    def _update(self) -> None:
        self.progress.update(self.task, completed=self.ledger.behind, total=self.ledger.behind + self.ledger.ahead)

    def expect(self, program: str, seconds: float) -> None:
        self.ledger.expect(program, seconds)
        self._update()

    def step(self, program: str, allocator: str, what: str) -> None:
        self.progress.update(self.task, description=f"{program} {allocator} {what}")

    def done(self, program: str, runs: int = 1) -> None:
        self.ledger.done(program, runs)
        self._update()

    def more(self, program: str, runs: int) -> None:
        self.ledger.more(program, runs)
        self._update()

    def say(self, text: str) -> None:
        self.progress.console.print(text, style="yellow", markup=False, soft_wrap=True)


class Lines(Listener):
    """Into a file or a pipe: one line for each program that is finished."""

    def __init__(self, console: Console, programs: list[str], runs_each: int):
        self.console = console
        self.ledger = Ledger(programs, runs_each)
        self.start = time.monotonic()

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        pass

    def expect(self, program: str, seconds: float) -> None:
        self.ledger.expect(program, seconds)

    def done(self, program: str, runs: int = 1) -> None:
        self.ledger.done(program, runs)
        if self.ledger.runs_left[program] == 0:
            pace = (time.monotonic() - self.start) / self.ledger.behind
            self.say(f"{program}: done, about {self.ledger.ahead * pace / 60:.0f} min left")

    def more(self, program: str, runs: int) -> None:
        self.ledger.more(program, runs)

    def say(self, text: str) -> None:
        self.console.print(text, markup=False, soft_wrap=True)


def listener(console: Console, programs: list[str], runs_each: int) -> Bar | Lines:
    return (Bar if console.is_terminal else Lines)(console, programs, runs_each)


def _table(columns: list[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for number, heading in enumerate(columns):
        table.add_column(heading, justify="right" if number else "left", no_wrap=True)
    return table


def tables(console: Console, report: Report) -> None:
    """The machine, the geometric means by metric, and each program's CPU time and memory beside the others'."""
    console.print(machine.in_words(report.document["machine"]), markup=False, highlight=False, soft_wrap=True)
    for subject in report.subjects():
        bases = report.bases(subject)
        for metric in TABLED:
            table = _table(["against", *(group.replace(", ", ",\n") for group in report.groups())])
            for base in bases:
                found = [report.geomean(group, subject, base, metric) for group in report.groups()]
                if any(found):
                    table.add_row(base, *(_ratio(one) for one in found))
            _print(console, f"{subject}: {TITLES[metric]} / that of each other, below 1 is better", table)
    for subject in report.subjects():
        title = f"{subject}: each program's CPU time and peak memory, and both / the other's"
        _print(console, title, _programs_table(report, subject, MOST_COLUMNS))
        if len(report.bases(subject)) > MOST_COLUMNS:
            console.print("The others are in the report (--report DIR).", style="dim")
    console.print("Grey: no difference beyond the noise.", style="dim")
    if report.disturbed():
        console.print(f"{report.disturbed()} of {len(report.document['results'])} samples were disturbed by others.")
    if said := _precision(report):
        console.print(said, markup=False, highlight=False, soft_wrap=True)


def _precision(report: Report) -> str | None:
    """How wide the widest interval of a group is: with --until, or where that would help."""
    options = report.document["options"]
    if options.get("until") is not None:
        return _until(report, options["until"], options["at_most_rounds"])
    widest = report.widest("cpu_s", "score")
    if widest is None or widest.half_width <= WIDE:
        return None
    return f"The widest interval of a group is {_width(widest)}: bench --until RATIO narrows it with more rounds."


def _until(report: Report, half_width: float, at_most_rounds: int) -> str:
    widest = report.widest(until.METRIC)
    if widest is None:
        return "--until: no geometric mean of CPU time has an interval."
    said = f"After {rounds_done(report.document)} rounds the widest interval of a group is {_width(widest)}"
    asked = f"the {100 * half_width:g} % of --until"
    if widest.half_width <= half_width:
        return f"{said}: within {asked}."
    if report.document["interrupted"]:
        return f"{said}: interrupted before it came to {asked}."
    return f"{said}: --at-most-rounds {at_most_rounds} ended it before it came to {asked}."


def _width(one: stats.Geomean) -> str:
    half_width = f"±{100 * one.half_width:.3g} %"
    return f"{half_width} ({one.allocator} / {one.against}, {one.group}, {TITLES[one.metric]})"


def _print(console: Console, title: str, table: Table) -> None:
    if table.row_count:
        console.print(title, style="bold", highlight=False, soft_wrap=True)
        console.print(table)


def _programs_table(report: Report, subject: str, most: int) -> Table:
    bases = report.bases(subject)[:most]
    table = _table(["program", "CPU ms", "±%", "MiB", *bases])
    for program in report.programs:
        cpu = report.samples.summary(program, subject, "cpu_s")
        peak = report.samples.summary(program, subject, "peak_rss_kib")
        if not cpu or not peak:
            continue
        cells = []
        for base in bases:
            ratios = [report.samples.ratio(program, subject, base, metric) for metric in ("cpu_s", "peak_rss_kib")]
            cells.append(" ".join(_ratio(ratio) for ratio in ratios) if any(ratios) else report.nothing(program, base))
        own_cells = [f"{cpu.median * 1000:.1f}", f"{cpu.spread * 100:.0f}", f"{peak.median / 1024:.1f}"]
        table.add_row(program, *own_cells, *cells)
    return table


def machines(console: Console, a: compare.Results, b: compare.Results) -> None:
    """On which CPUs two runs were, and whether these can be compared."""
    console.print(f"A: {a.name}, {a.cpu}; B: {b.name}, {b.cpu}", markup=False, highlight=False, soft_wrap=True)
    if said := compare.warning(a, b):
        console.print(said, style="yellow", markup=False, highlight=False, soft_wrap=True)


def changes(console: Console, a: compare.Results, b: compare.Results, subject: str) -> None:
    """What changed for an allocator from A to B, each metric a table; what the noise does not explain is coloured."""
    console.print(f"{subject}: {a.versions[subject]} in {a.name}, {b.versions[subject]} in {b.name}", markup=False)
    others = compare.yardsticks(a, b, subject)
    if others:
        console.print(f"Times are relative to {', '.join(others)}.", markup=False)
    else:
        console.print("No other allocator is the same in both files: times are of two runs, not side by side.")
    for metric in TABLED:
        table = _table(["program", "B / A", "95 % interval"])
        for one in compare.changes(a, b, subject, metric):
            ratio = _coloured(one.ratio) if one.clear else f"{one.ratio:.2f}"
            table.add_row(one.workload, ratio, "-" if one.low is None else f"{one.low:.2f} to {one.high:.2f}")
        _print(console, f"{TITLES[metric]}, below 1 B is better", table)


def disagreements(console: Console, apart: list[compare.Disagreement], per_cent: float) -> None:
    """The geometric means of two files that differ most."""
    table = _table(["group", "ratio", "metric", "first", "second", "change"])
    for one in apart[:10]:
        row = [
            one.group,
            f"{one.allocator} / {one.against}",
            TITLES[one.metric],
            f"{one.first:.3f}",
            f"{one.second:.3f}",
        ]
        table.add_row(*row, f"{one.change * 100:+.1f} %")
    console.print(compare.agreement(apart, per_cent), markup=False, soft_wrap=True)
    over = sum(abs(one.change) > per_cent / 100 for one in apart)
    _print(console, f"{over} of {len(apart)} geometric means differ by more than {per_cent:g} %; the largest:", table)


def _ratio(found: stats.Ratio | None) -> str:
    if found is None:
        return "-"
    return f"[dim]{found.ratio:.2f}[/]" if found.within_noise else _coloured(found.ratio)


def _coloured(ratio: float) -> str:
    colour = "red" if ratio > 1 + LEVEL else "green" if ratio < 1 - LEVEL else "white"
    return f"[{colour}]{ratio:.2f}[/]"
