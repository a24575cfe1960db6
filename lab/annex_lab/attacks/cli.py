"""The command annex-lab attacks."""

import json
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from annex_lab import allocators as known
from annex_lab import native, show
from annex_lab.allocators import Allocator
from annex_lab.attacks import program as attack_program
from annex_lab.attacks import randomness as chance
from annex_lab.attacks import score, tables
from annex_lab.attacks.program import Attack
from annex_lab.document import without_paths

DEFAULT = ("glibc", "mimalloc3-secure", "snmalloc-checks", "scudo", "annex", known.HARDENED)
console = Console(stderr=True)


def _end(why: Exception | str, status: int = 2) -> NoReturn:
    console.print(str(why), style="red", markup=False, soft_wrap=True)
    raise typer.Exit(status)


def _find(names: list[str], program: Path) -> tuple[list[Allocator], list[dict[str, str]]]:
    """The allocators that can be attacked here, and why the others can't."""
    found, absent = [], []
    for name in known.expand(names):
        try:
            allocator = known.find_for_programs(name)
            attack_program.check_served(program, allocator)
            found.append(allocator)
        except known.UnknownAllocator as why:
            raise typer.BadParameter(str(why)) from None
        except known.Unavailable as why:
            absent.append({"allocator": name, "why": str(why)})
    return found, absent


def _choose(everything: list[Attack], wanted: list[str]) -> list[Attack]:
    """By name or class; all where nothing is asked for."""
    names = {name for attack in everything for name in (attack.name, attack.kind)}
    if unknown := [name for name in wanted if name not in names]:
        raise typer.BadParameter(f"no attack or class is called {', '.join(unknown)}: annex-lab attacks --list")
    return [attack for attack in everything if not wanted or attack.name in wanted or attack.kind in wanted]


def _print_list(everything: list[Attack]) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("attack", "class", "what", "the attacker gains"):
        table.add_column(heading, no_wrap=True)
    for attack in everything:
        table.add_row(attack.name, attack.kind, attack.what, attack.gain)
    Console(width=220).print(table)


def _write(text: str, document: dict, json_file: Path | None, markdown_file: Path | None, folder: Path | None) -> None:
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    for file in filter(None, (json_file, folder and folder / "attacks.json")):
        file.write_text(json.dumps(document, indent=1) + "\n")
    for file in filter(None, (markdown_file, folder and folder / "attacks.md")):
        tables.write(text, file)


def attacks(
    allocators: Annotated[str, typer.Option(help=f"a,b,c, as of bench [default: {','.join(DEFAULT)}]")] = "",
    trials: Annotated[int, typer.Option(min=1, help="processes for each attack under each allocator")] = 50,
    attack: Annotated[list[str] | None, typer.Option(help="only this attack, or this class; many times")] = None,
    list_: Annotated[bool, typer.Option("--list", help="only say what attacks there are")] = False,
    randomness: Annotated[bool, typer.Option("--randomness", help="also measure where blocks lie")] = False,
    samples: Annotated[int, typer.Option(min=2, help="of --randomness: processes, and distances")] = 2000,
    json_file: Annotated[Path | None, typer.Option("--json", help="write all that happened here")] = None,
    markdown_file: Annotated[
        Path | None, typer.Option("--markdown", help="write the tables here, between the file's marks if it has them")
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", file_okay=False, help="write attacks.json and attacks.md here")
    ] = None,
) -> None:
    """Attacks allocators with small programs that misuse the heap, and says which are stopped, found or exploited.

    The exit status is 0; 1 where a program that does nothing wrong did not survive, a trial could not be made, or an
    allocator that was named is not there; 2 for wrong usage; 130 after Ctrl-C (what is done by then is reported).
    """
    try:
        program = native.attack()
    except native.BuildFailed as why:
        _end(why)
    everything = attack_program.listed(program)
    if list_:
        return _print_list(everything)
    chosen = _choose(everything, attack or [])
    names = [name.strip() for name in allocators.split(",") if name.strip()] or list(DEFAULT)
    known.build_missing(names)
    found, absent = _find(names, program)
    if not found:
        _end(f"no allocator is left to attack: {'; '.join(one['why'] for one in absent)}", 1)

    scorecard = score.Scorecard(chosen, [one.name for one in found], absent=absent)
    places: dict[str, list[chance.Randomness]] = {}
    interrupted = False
    try:
        show.watched(console, score.fill(scorecard, program, found, trials), len(chosen) * len(found), "attacks")
        if randomness:
            show.watched(
                console, chance.measure(program, found, samples, places), chance.steps(found, samples), "addresses"
            )
    except KeyboardInterrupt:
        interrupted = True
    document = scorecard.as_document(found, {"command": without_paths(sys.argv[1:]), "trials": trials})
    if places:
        document["randomness"] = {name: [one.as_dict() for one in each] for name, each in places.items()}
    _write(tables.as_markdown(scorecard, document, places), document, json_file, markdown_file, report)
    tables.show(Console(width=max(130, console.width)), scorecard, places)
    for complaint in scorecard.complaints:
        console.print(complaint, style="red", markup=False, soft_wrap=True)
    if interrupted:
        console.print("Interrupted.")
        raise typer.Exit(130)
    if scorecard.complaints or (absent and allocators):
        raise typer.Exit(1)


def register(app: typer.Typer) -> None:
    app.command("attacks")(attacks)
