"""The document of a run, as JSON: the machine, the allocators, each round's values, and what failed or was not there.

Three kinds, "table", "day" and "bursts". The page and the tables in the terminal are made of it alone.
"""

import json
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path

from rich import box
from rich.table import Table

from annex_lab import document, machine, stats
from annex_lab.allocators import Allocator

FORMAT = 1
UNITS = ("_mib", "_mib_s", "_ms", "_us", "_s")  # of values that are no counts


def begun(kind: str, allocators: list[Allocator], absent: list[dict[str, str]], options: dict) -> dict:
    """A document without results yet."""
    return {
        "format": FORMAT,
        "kind": kind,
        "date": datetime.now(timezone.utc).date().isoformat(),
        "machine": machine.describe(),
        "options": options,
        "allocators": {
            allocator.name: {"version": allocator.version, "flags": allocator.flags, "env": allocator.env}
            for allocator in allocators
        },
        "absent": absent,
        "failures": [],
        "results": [],
        "interrupted": False,
    }


def load(path: Path, kind: str) -> dict:
    """A document of that kind from a file; raises Unusable."""
    command = "give-back" if kind == "table" else f"give-back --{kind}"
    return document.read(path, command, FORMAT, lambda content: content.get("kind") == kind)


def as_text(content: dict) -> str:
    """Each result on a line of its own: a day's has some hundred numbers."""
    rows = ",\n".join(f"  {json.dumps(row)}" for row in content["results"])
    rest = json.dumps({name: value for name, value in content.items() if name != "results"}, indent=1)
    return f'{rest[:-2]},\n "results": [\n{rows}\n ]\n}}\n'


def save(content: dict, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(as_text(content))


def values(content: dict, allocator: str, name: str, mode: str | None = None) -> list[float]:
    """Of all rounds, one a round that worked; of a table's mode."""
    rows = [row for row in content["results"] if row["allocator"] == allocator and row.get("mode") == mode]
    return [row["values"][name] for row in rows if name in row["values"]]


def as_table(title: str, headings: Iterable[str], rows: Iterable[tuple[str, list[str]]]) -> Table:
    """For the terminal: a row's name, and its cells."""
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("")
    for heading in headings:
        table.add_column(heading, justify="right")
    for name, cells in rows:
        table.add_row(name, *cells)
    return table


def number(value: float, whole: bool) -> str:
    """Three digits, or a whole number; nothing is so small that it needs more than two after the point."""
    if whole or abs(value) >= 99.95 or abs(value) < 0.005:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 9.95 else f"{value:.2f}"


def cell(content: dict, allocator: str, name: str, mode: str | None = None, as_range: bool = False) -> str:
    """The median of the rounds, and in brackets their (largest - smallest) / median, or smallest and largest."""
    found = values(content, allocator, name, mode)
    if not found:
        return "-"
    whole = not name.endswith(UNITS)
    summary = stats.summarize(found)
    if len(found) == 1:
        spread = ""
    elif as_range:
        spread = f" ({number(min(found), whole)} to {number(max(found), whole)})"
    else:
        spread = f" ({summary.spread * 100:.0f} %)"
    return number(summary.median, whole) + spread
