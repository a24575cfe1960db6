"""The rows: what stays resident of a program that has freed most of what it had, and what giving it back costs."""

from collections.abc import Iterator
from dataclasses import dataclass

from rich.table import Table

from annex_lab.allocators import Allocator
from annex_lab.give_back import results, runs
from annex_lab.sample import RunFailed

LIMIT_S = 300  # beside the time in which the program does nothing


@dataclass(frozen=True)
class Row:
    letter: str  # of the mode; --rows chooses by it
    mode: str  # of tools/give_back.c
    value: str  # that the mode says, MiB
    what: str


ROWS = (
    Row("a", "holes-trimmed", "trimmed_mib", "300,000 blocks, one in twenty kept: given back by a call"),
    Row("a", "holes-trimmed", "used_pages_mib", "of that, pages of 4 KiB in which a block in use lies"),
    Row("b", "holes-one-thread", "idle_mib", "the same, one thread: nobody calls anything for {idle} s"),
    Row("c", "holes-two-threads", "idle_mib", "the same, two threads: nobody calls anything for {idle} s"),
    Row("d", "threads-ended", "trimmed_mib", "100 threads that freed 4 MiB each and ended: given back by two calls"),
    Row("e", "threads-asleep", "idle_mib", "100 threads that freed 4 MiB each and sleep: after {idle} s"),
    Row("e", "threads-asleep", "trimmed_mib", "then: given back by a call of another thread"),
    Row("f", "filled", "idle_mib", "849 MiB, nine in ten blocks freed: after {part} s"),
    Row("f", "filled", "pairs_mib", "then: after 200,000 pairs of malloc and free"),
    Row("g", "spans", "trimmed_mib", "256 spans of up to 2 GiB, hardly touched, all freed: given back by a call"),
)
MODES = {row.letter: row.mode for row in ROWS}

# (value, what) of what modes say that do nothing for a while
COSTS = (
    ("idle_cpu_ms", "CPU time, ms"),
    ("purge_switches", "wake-ups of annex-purge"),
    ("helper_switches", "wake-ups of all its threads"),
)
# What giving back takes, and having the memory again.
GIVING_BACK = (
    ("holes-trimmed", "trim_ms", "a: the call"),
    ("holes-trimmed", "again_ms", "a: then: taking and writing as many blocks as were free"),
    ("threads-ended", "trim_ms", "d: the second call"),
    ("threads-asleep", "trim_ms", "e: the call"),
    ("spans", "trim_ms", "g: the call"),
)
IDLE_MODES = {
    "holes-one-thread": "b: one thread",
    "holes-two-threads": "c: two threads",
    "threads-asleep": "e: 100 threads asleep",
}


class NoSuchRow(Exception):
    pass


def choose(letters: list[str]) -> list[str]:
    """The modes of those rows, all where none is asked for; raises NoSuchRow."""
    if unknown := [letter for letter in letters if letter not in MODES]:
        raise NoSuchRow(f"no row is called {', '.join(unknown)}: {', '.join(MODES)}")
    return [mode for letter, mode in MODES.items() if not letters or letter in letters]


def measure(document: dict, allocators: list[Allocator], modes: list[str]) -> Iterator[str]:
    """Fills the document; yields what comes next, for a person who waits. The allocators take turns in each mode."""
    program = runs.compiled("give_back")
    options = document["options"]
    limit_s = LIMIT_S + 2 * options["idle_s"]
    for round_ in range(options["rounds"]):
        for mode in modes:
            turn = round_ % len(allocators)
            for allocator in allocators[turn:] + allocators[:turn]:
                yield f"{mode}, {allocator.name}"
                where = {"allocator": allocator.name, "round": round_, "mode": mode}
                try:
                    said = runs.run(program, (mode, options["scale"], options["idle_s"]), allocator, limit_s)
                except RunFailed as why:
                    document["failures"].append({**where, "why": str(why)})
                    continue
                document["allocators"][allocator.name]["given_back_by"] = said.words.get("given_back_by", "?")
                used = {"cpu_s": round(said.cpu_s, 3), "foreign_cpu_s": round(said.foreign_cpu_s, 3)}
                document["results"].append({**where, "values": {**said.values, **used}})


def rows(document: dict) -> list[tuple[str, list[str]]]:
    """(what, a cell for each allocator), MiB; rows that were not asked for are left out."""
    idle = document["options"]["idle_s"]
    made = {row["mode"] for row in document["results"]}
    return [
        (
            f"{row.letter}: {row.what.format(idle=f'{idle:g}', part=f'{idle * 3 / 5:g}')}",
            [results.cell(document, name, row.value, row.mode) for name in document["allocators"]],
        )
        for row in ROWS
        if row.mode in made
    ]


def costs(document: dict) -> list[tuple[str, list[str]]]:
    """(what, a cell for each allocator) of what doing nothing costs: the median, the smallest and the largest."""
    made = {row["mode"] for row in document["results"]}
    return [
        (
            f"{told}: {what}",
            [results.cell(document, name, value, mode, as_range=True) for name in document["allocators"]],
        )
        for mode, told in IDLE_MODES.items()
        if mode in made
        for value, what in COSTS
    ]


def giving_back(document: dict) -> list[tuple[str, list[str]]]:
    """(what, a cell for each allocator) of what giving back takes, ms: the median, the smallest and the largest."""
    made = {row["mode"] for row in document["results"]}
    return [
        (what, [results.cell(document, name, value, mode, as_range=True) for name in document["allocators"]])
        for mode, value, what in GIVING_BACK
        if mode in made
    ]


def tables(document: dict) -> list[Table]:
    """For the terminal: medians, and in brackets the spread, or the smallest and the largest."""
    made = []
    parts = {
        "Resident, MiB": rows(document),
        "What giving back takes, ms": giving_back(document),
        "What doing nothing costs": costs(document),
    }
    for title, lines in parts.items():
        if lines:
            made.append(results.as_table(title, document["allocators"], lines))
    return made
