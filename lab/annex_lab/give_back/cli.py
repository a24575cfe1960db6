"""The command annex-lab give-back."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from annex_lab import allocators as known
from annex_lab import machine, native, show
from annex_lab.allocators import Allocator
from annex_lab.document import Unusable, without_paths
from annex_lab.give_back import bursts, day, page, results, runs, table

console = Console(stderr=True)
KINDS = {"table": table, "day": day, "bursts": bursts}


def _end(why: Exception | str, status: int = 2) -> NoReturn:
    console.print(str(why), style="red", markup=False, soft_wrap=True)
    raise typer.Exit(status)


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _find(names: list[str], strict: bool) -> tuple[list[Allocator], list[dict[str, str]]]:
    """The allocators that can be measured here, and why the others can't; a name that means nothing ends it all."""
    found, absent = [], []
    for name in names:
        try:
            found.append(runs.find(name))
        except known.UnknownAllocator as why:
            _end(why)
        except known.Unavailable as why:
            absent.append({"allocator": name.partition("=")[0], "why": str(why)})
            console.print(f"left out: {name}: {why}", style="red" if strict else "yellow", markup=False, soft_wrap=True)
    if not found:
        _end("no allocator is left to measure")
    if len({allocator.name for allocator in found}) < len(found):
        _end("two allocators have the same name")
    return found, absent


def _command(kind: str, options: dict[str, object]) -> str:
    """That makes the same document, without paths of this machine."""
    given = [part for name, value in options.items() if value != "" for part in (f"--{name}", f"{value}")]
    return without_paths(["give-back", *([f"--{kind}"] if kind != "table" else []), *given])


def _measured(document: dict, work: Iterator[str], total: int) -> dict:
    try:
        show.watched(console, work, total)
    except KeyboardInterrupt:
        document["interrupted"] = True
    except native.BuildFailed as why:
        _end(why)
    return document


def _periods(text: str) -> list[float]:
    try:
        periods = [float(part) for part in _split(text)] or list(bursts.PERIODS_S)
    except ValueError:
        _end(f"--periods {text}: seconds, such as 1,10,60")
    if not all(0.1 <= period <= 3600 for period in periods):
        _end(f"--periods {text}: each is from 0.1 to 3600 s")
    return periods


def _write_page(to: Path) -> None:
    try:
        written = page.write(to)
    except Unusable as why:
        _end(why)
    for file in written:
        console.print(f"written: {file}", markup=False, soft_wrap=True)


def _check_files(picture: Path | None, kind: str, only_page: bool, to: Path | None) -> None:
    if only_page and to is None:
        _end("--only-page needs --page: which page is to be made?")
    if picture and kind != "day":
        _end("--picture is for --day: there is none of anything else")
    if picture and picture.suffix not in (".svg", ".png"):
        _end(f"{picture}: a picture's name ends with .svg or .png")


def give_back(
    is_day: Annotated[
        bool, typer.Option("--day", help="a server's day in a minute instead of the table: curves, times of requests")
    ] = False,
    has_bursts: Annotated[
        bool,
        typer.Option("--bursts", help="a server with a burst of requests each so often instead"),
    ] = False,
    allocators: Annotated[
        str,
        typer.Option(
            help=f"a,b,c; also NAME=/path/to/lib.so, {', '.join(runs.SET)}, and the words ours, core, peers, "
            f"variants, all; default: {', '.join(runs.DEFAULT)}; with --bursts {', '.join(bursts.DEFAULT)}"
        ),
    ] = "",
    rounds: Annotated[int, typer.Option(min=1, help="runs of each program under each allocator, in turns")] = 5,
    rows: Annotated[str, typer.Option(help="a,b,c: only these of the table's rows; docs/give-back.md has them")] = "",
    scale: Annotated[float, typer.Option(min=0.001, help="multiplies the work")] = 1.0,
    idle: Annotated[float, typer.Option(min=0.05, help="seconds in which the table's programs do nothing")] = 5.0,
    seconds: Annotated[float, typer.Option(min=0.5, help="how long the day takes")] = 60.0,
    periods: Annotated[str, typer.Option(help="a,b,c: seconds from one burst to the next; default: 1,10,60")] = "",
    threads: Annotated[
        int | None, typer.Option(min=1, max=256, help="of the server; default: 64, with --bursts 8")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="of the server's requests")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", dir_okay=False, help="write all values here")] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", dir_okay=False, help="draw the day's curves here: .svg, .png")
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--page",
            dir_okay=False,
            help="write the page here, and this run's values into campaigns/give-back beside it",
        ),
    ] = None,
    only_page: Annotated[
        bool, typer.Option("--only-page", help="measure nothing: make --page again of the values that are there")
    ] = False,
) -> None:
    """Measures what allocators give back to the system, and when: after a call, and while a program does nothing.

    The exit status is 0; 1 where a program failed under an allocator, or an allocator that was named is not there; 2
    for wrong usage; 130 after Ctrl-C (what is done by then is reported).
    """
    if is_day and has_bursts:
        _end("--day and --bursts are two things: choose one")
    kind = "day" if is_day else "bursts" if has_bursts else "table"
    _check_files(picture, kind, only_page, to)
    if only_page:
        _write_page(to)
        return
    try:
        modes = table.choose(_split(rows))
    except table.NoSuchRow as why:
        _end(why)
    if rows and kind != "table":
        _end("--rows is for the table: there are none of anything else")
    if periods and kind != "bursts":
        _end("--periods is for --bursts")
    periods_s = _periods(periods)
    default = bursts.DEFAULT if kind == "bursts" else runs.DEFAULT
    found, absent = _find(known.expand(_split(allocators) or default), strict=bool(allocators))
    given = {"allocators": allocators, "rounds": rounds, "scale": f"{scale:g}"}
    options = {"rounds": rounds, "scale": scale}
    total = rounds * len(found)
    if kind == "table":
        given |= {"rows": rows, "idle": f"{idle:g}"}
        options |= {"idle_s": idle}
        total *= len(modes)
    else:
        options |= {"threads": threads or (64 if kind == "day" else 8), "seed": seed}
        given |= {"threads": options["threads"], "seed": seed}
    if kind == "day":
        given |= {"seconds": f"{seconds:g}"}
        options |= {"day_s": seconds}
    if kind == "bursts":
        given |= {"periods": periods}
        options |= {"periods_s": periods_s}
        total *= len(periods_s)
    options["command"] = _command(kind, given)
    document = results.begun(kind, found, absent, options)
    chosen = (modes,) if kind == "table" else ()
    _measured(document, KINDS[kind].measure(document, found, *chosen), total)
    _report(document, json_file, picture, to)
    if document["interrupted"]:
        raise typer.Exit(130)
    if document["failures"] or (absent and allocators):
        raise typer.Exit(1)


def _report(document: dict, json_file: Path | None, picture: Path | None, to: Path | None) -> None:
    """The files that were asked for, and the tables."""
    out = Console(width=max(170, console.width))
    out.print(machine.in_words(document["machine"]), markup=False, highlight=False)
    for name, one in document["allocators"].items():
        settings = "".join(f", {variable}={value}" for variable, value in one["env"].items())
        out.print(f"{name}: {one['version']}{settings}", markup=False, highlight=False)
    for made in KINDS[document["kind"]].tables(document):
        out.print(made)
    for failure in document["failures"]:
        mode = f" in {failure['mode']}" if "mode" in failure else ""
        why = f"failed: {failure['allocator']}{mode}, round {failure['round'] + 1}: {failure['why']}"
        console.print(why, style="red", markup=False, soft_wrap=True)
    if json_file:
        results.save(document, json_file)
    if picture and document["results"]:
        day.draw(document, picture)
    if to:
        results.save(document, page.data_file(to, document["kind"]))
        _write_page(to)


def register(app: typer.Typer) -> None:
    app.command("give-back")(give_back)
