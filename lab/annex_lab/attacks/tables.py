"""The scorecard in words: as Markdown, between two marks of a document where it has them, and on the terminal."""

import math
from collections.abc import Iterable
from pathlib import Path

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from annex_lab.attacks.program import ODDS
from annex_lab.attacks.randomness import Entropy, Randomness
from annex_lab.attacks.score import Cell, Scorecard
from annex_lab.attacks.verdict import Outcome
from annex_lab.report import table_head, table_row

BEGIN, END = "<!-- annex-lab attacks begin -->", "<!-- end -->"
COLOURS = {
    Outcome.STOPPED: "green",
    Outcome.FOUND: "cyan",
    Outcome.CRASHED: "yellow",
    Outcome.SURVIVED: "dim",
    Outcome.EXPLOITED: "red",
}
TITLES = {
    Outcome.STOPPED: "stopped at once",
    Outcome.FOUND: "found later",
    Outcome.CRASHED: "crashed later",
    Outcome.SURVIVED: "survived",
    Outcome.EXPLOITED: "exploited",
}
MARKS = (
    "° by a fault of the hardware in the wrong call or access, not by a check; "
    "* found or crashed when the attacker had already changed something, which the program had not yet used."
)


def percent(share: float) -> str:
    """Never 0 or 100 where it is not."""
    if 0 < share < 0.01:
        return "< 1 %"
    return "> 99 %" if 0.99 < share < 1 else f"{100 * share:.0f} %"


def in_words(cell: Cell | None) -> list[tuple[Outcome, str]]:
    """The outcomes of a cell, the worst first: a word, its marks, and the odds where there are several."""
    parts = []
    for outcome in sorted(cell.counts if cell else (), reverse=True):
        text = outcome.word
        if outcome is Outcome.STOPPED and cell.by_fault:
            text += "°"
        if outcome in (Outcome.FOUND, Outcome.CRASHED) and cell.after_gain:
            text += "*"
        if cell.share(outcome) < 1:
            text += f" {percent(cell.share(outcome))}"
        parts.append((outcome, text))
    return parts


def _markdown_cell(cell: Cell | None) -> str:
    parts = [f"**{text}**" if outcome is Outcome.EXPLOITED else text for outcome, text in in_words(cell)]
    return ", ".join(parts) or "-"


def _rich_cell(cell: Cell | None) -> str:
    return "\n".join(f"[{COLOURS[outcome]}]{text}[/]" for outcome, text in in_words(cell)) or "-"


def _summary(scorecard: Scorecard) -> tuple[list[str], list[list[str]]]:
    """For each allocator: of the mistakes, how many have each outcome as their worst, and its share of all trials."""
    rows = []
    for allocator in scorecard.allocators:
        worst = scorecard.worst(scorecard.mistakes, allocator)
        shares = scorecard.shares(scorecard.mistakes, allocator)
        odds = scorecard.shares(scorecard.of_kind(*ODDS), allocator)
        cells = [f"{worst[outcome]} ({percent(shares[outcome])})" for outcome in Outcome]
        rows.append([allocator, *cells, percent(odds[Outcome.EXPLOITED])])
    return ["allocator", *(TITLES[outcome] for outcome in Outcome), "reuse and neighbours hit"], rows


def _classes(scorecard: Scorecard) -> tuple[list[str], list[list[str]]]:
    """How many attacks of each class any trial of which was exploited."""
    rows = []
    for kind in scorecard.kinds:
        attacks = scorecard.of_kind(kind)
        counts = [scorecard.worst(attacks, allocator)[Outcome.EXPLOITED] for allocator in scorecard.allocators]
        rows.append([kind, str(len(attacks)), *map(str, counts)])
    return ["class", "attacks", *scorecard.allocators], rows


RANDOM_HEADS = (
    "allocator",
    "bytes",
    "first block: bits",
    "the same, from libc: bits",
    "best guess",
    "distance to the next: bits",
    "best guess",
    "directly behind",
)


def _between(found: Entropy) -> str:
    """What the whole entropy lies between."""
    least = f"{'> ' if found.collision_is_bound else ''}{found.collision_bits:.1f}"
    return f"{least} to {max(found.bits, found.collision_bits):.1f}"


def _random_rows(found: dict[str, list[Randomness]]) -> list[list[str]]:
    return [
        [
            allocator,
            f"{one.bytes:,}",
            _between(one.first),
            _between(one.first_from_libc),
            percent(one.first_from_libc.best_guess),
            f"{one.distance.shannon_bits:.1f}",
            percent(one.distance.best_guess),
            percent(one.behind),
        ]
        for allocator, each in found.items()
        for one in each
    ]


def _sample_note(found: dict[str, list[Randomness]]) -> str:
    one = next(iter(found.values()))[0]
    n, pairs = one.first.samples, one.first.samples * (one.first.samples - 1) / 2
    return (
        f"First blocks of {n:,} processes: from the entropy by collisions, of which so many can show no more than "
        f"{math.log2(pairs):.1f} bits, to the sum of the bits' own. Of {one.distance.samples:,} distances: Shannon's, "
        f"{math.log2(one.distance.samples):.1f} bits at most."
    )


def absence(one: dict[str, str]) -> str:
    return f"{one['allocator']} is left out, as it is not here ({one['why']})"


def _markdown_table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    return [*table_head(list(heads)), *(table_row(list(row)) for row in rows)]


def as_markdown(scorecard: Scorecard, document: dict, randomness: dict[str, list[Randomness]] | None = None) -> str:
    versions = ", ".join(f"{name} {one['version']}" for name, one in document["allocators"].items())
    lines = [f"Made by: `{document['options']['command']}`, {document['options']['trials']} trials of each attack.", ""]
    lines += [f"{versions}.", ""]
    lines += [f"{absence(one)}.\n" for one in scorecard.absent]
    if scorecard.attacks:
        mistakes = len(scorecard.mistakes)
        lines += [f"Of {mistakes} attacks, how many have each outcome as their worst, and its share of all trials:", ""]
        lines += [
            *_markdown_table(*_summary(scorecard)),
            "",
            "Attacks of each class that were exploited in any trial:",
            "",
        ]
        lines += [*_markdown_table(*_classes(scorecard)), ""]
    for kind in scorecard.kinds:
        lines += [f"### {kind.capitalize()}", ""]
        rows = [
            [
                f"{attack.name}: {attack.what}",
                *(_markdown_cell(scorecard.cell(attack.name, a)) for a in scorecard.allocators),
            ]
            for attack in scorecard.of_kind(kind)
        ]
        lines += [*_markdown_table(["attack", *scorecard.allocators], rows), ""]
    if scorecard.attacks:
        lines += [MARKS, ""]
    if randomness:
        lines += ["### Randomness", "", *_markdown_table(RANDOM_HEADS, _random_rows(randomness)), ""]
        lines += [_sample_note(randomness), ""]
    return "\n".join(lines)


def write(text: str, file: Path) -> None:
    """Between the marks of a file that has them; else it becomes the whole file."""
    old = file.read_text() if file.exists() else ""
    before, begin, rest = old.partition(BEGIN)
    _, end, after = rest.partition(END)
    file.write_text(f"{before}{begin}\n\n{text}\n{end}{after}" if end else f"# The scorecard of attacks\n\n{text}")


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]], title: str = "") -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), title=title or None, title_justify="left")
    for number, heading in enumerate(heads):
        table.add_column(heading, justify="left" if number == 0 else "right", no_wrap=number == 0)
    for row in rows:
        table.add_row(*row)
    return table


def show(console: Console, scorecard: Scorecard, randomness: dict[str, list[Randomness]] | None = None) -> None:
    for kind in scorecard.kinds:
        rows = (
            [attack.name, *(_rich_cell(scorecard.cell(attack.name, allocator)) for allocator in scorecard.allocators)]
            for attack in scorecard.of_kind(kind)
        )
        console.print(_table(["attack", *scorecard.allocators], rows, kind))
    if scorecard.attacks:
        console.print(MARKS, style="dim")
        console.print(_table(*_summary(scorecard), "the worst that happened, attacks (and share of trials)"))
    if randomness:
        console.print(_table(RANDOM_HEADS, _random_rows(randomness), "bits of entropy"))
        console.print(_sample_note(randomness), style="dim")
    for one in scorecard.absent:
        console.print(escape(absence(one)), style="yellow", soft_wrap=True)
