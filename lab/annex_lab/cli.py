"""The command annex-lab."""

import enum
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from annex_lab import allocators as known
from annex_lab import compare, native, paths, programs, show
from annex_lab.bench import Bench, Plan
from annex_lab.programs import inputs, own
from annex_lab.programs.model import Context, Program
from annex_lab.report import Report

app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__)
console = Console(stderr=True)


class Suite(str, enum.Enum):
    single = "single"
    multi = "multi"
    all = "all"


def _split(text: str | None) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()] if text else []


def _allocators(names: list[str], strict: bool) -> list[known.Allocator]:
    """Those named must be there; of the default ones, what is missing is said and left out."""
    found = []
    for name in names:
        try:
            found.append(known.find(name))
        except known.Unavailable as why:
            if strict:
                raise typer.BadParameter(str(why)) from None
            console.print(f"left out: {why}", style="yellow", markup=False)
    if not found:
        raise typer.BadParameter("no allocator is left to measure")
    return found


def _fail_early(error: Exception, status: int = 2) -> NoReturn:
    console.print(str(error), style="red", markup=False)
    raise typer.Exit(status)


def without_paths(arguments: list[str]) -> str:
    """The command that made a report, less what is only this machine's: the files written, the folders of libraries."""
    kept, skip = [], False
    for argument in arguments:
        if skip:
            skip = False
        elif argument in ("--json", "--markdown"):
            skip = True
        elif not argument.startswith(("--json=", "--markdown=")):
            kept.append(re.sub(r"/[^,\s]*/", "", argument))
    return " ".join(["annex-lab", *kept])


@app.callback()
def lab() -> None:
    """Runs programs under every allocator and says what each costs."""


def _programs(suite: Suite, workloads: list[str], command: list[str], stdin: Path | None) -> list[Program]:
    if command and workloads:
        raise typer.BadParameter("either --workloads or a command of your own")
    if stdin and not command:
        raise typer.BadParameter("--stdin is for a command of your own")
    try:
        return [own.of_command(command, stdin)] if command else programs.choose(suite.value, workloads)
    except programs.UnknownProgram as why:
        raise typer.BadParameter(str(why)) from None
    except own.NotFound as why:
        _fail_early(why, 127)


def _thread_counts(text: str) -> list[int]:
    counts = _split(text)
    if not counts or any(not count.isdecimal() or int(count) == 0 for count in counts):
        raise typer.BadParameter(f"--threads takes numbers from 1 up, with commas between them: not {text!r}")
    return list(dict.fromkeys(map(int, counts)))


def _each_with(counts: list[int], chosen: list[Program]) -> list[Program]:
    """Every multi-threaded program once with each number of threads, where several are asked for."""
    if len(counts) == 1:
        return chosen
    repeated = [[p.with_threads(count) for count in counts] if p.suite == "multi" else [p] for p in chosen]
    return [program for programs_ in repeated for program in programs_]


@app.command()
def bench(
    command: Annotated[
        list[str] | None, typer.Argument(help="after --: a command of your own, instead of a suite")
    ] = None,
    suite: Annotated[Suite, typer.Option(help="which programs")] = Suite.single,
    allocators: Annotated[
        str, typer.Option(help="a,b,c; also NAME=/path/to/lib.so; default: Annex and all peers")
    ] = "",
    workloads: Annotated[str, typer.Option(help="x,y: only these programs, of whatever suite")] = "",
    rounds: Annotated[int, typer.Option(min=1, help="samples of each program under each allocator")] = 5,
    scale: Annotated[float, typer.Option(min=0.001, help="multiplies the work of every program")] = 1.0,
    threads: Annotated[
        str, typer.Option(help="threads of the multi-threaded programs; a,b,c: each once with each")
    ] = "2",
    retries: Annotated[int, typer.Option(min=0, help="how often a disturbed sample is repeated")] = 2,
    patience: Annotated[float, typer.Option(min=0, help="seconds to wait for a quiet machine before a sample")] = 3.0,
    stdin: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="standard input of a command of your own")
    ] = None,
    limit: Annotated[float, typer.Option(min=1, help="seconds after which a run is ended and counts as failed")] = 120,
    json_file: Annotated[Path | None, typer.Option("--json", help="write all samples and figures here")] = None,
    markdown_file: Annotated[Path | None, typer.Option("--markdown", help="write the tables here")] = None,
) -> None:
    """Measures programs side by side under the allocators: time, memory, page faults.

    The exit status is 0, or 1 where a program failed under an allocator, 2 for wrong usage, 127 where a command of your
    own is not found, 130 after Ctrl-C (what is done by then is reported).
    """
    counts = _thread_counts(threads)
    chosen = _each_with(counts, _programs(suite, _split(workloads), command or [], stdin))
    names = _split(allocators) or known.for_suite("all" if workloads or command else suite.value)
    known.build_missing(names)
    found = _allocators(names, strict=bool(allocators))
    try:
        native.runner(), native.toucher()
        workload_folder = native.workloads()
    except native.BuildFailed as why:
        _fail_early(why)

    scratch = Path(tempfile.mkdtemp(prefix="annex-lab-")) / "run"
    context = Context(inputs.folder(paths.DATA), scratch, workload_folder, scale, counts[0], limit)
    plan = Plan(chosen, found, rounds, retries, patience)
    listener = show.listener(console, [program.name for program in chosen], 1 + len(found) * (1 + rounds))
    with listener:
        outcome = Bench(plan, context, listener).run()
    scratch.parent.rmdir()

    options = {
        "command": without_paths(sys.argv[1:]),
        "suite": suite.value,
        "rounds": rounds,
        "scale": scale,
        "threads": counts,
    }
    report = Report(outcome, chosen, found, options)
    show.tables(Console(width=max(130, console.width)), report)
    if json_file:
        json_file.write_text(json.dumps(report.as_json(), indent=1) + "\n")
    if markdown_file:
        markdown_file.write_text(report.as_markdown())
    if outcome.interrupted:
        raise typer.Exit(130)
    if outcome.failures:
        raise typer.Exit(1)


@app.command("compare")
def compare_(
    a: Annotated[Path, typer.Argument(help="results of annex-lab bench --json")],
    b: Annotated[Path, typer.Argument(help="later ones")],
    allocator: Annotated[str, typer.Option(help="whose; default: every Annex that both have")] = "",
) -> None:
    """Shows what changed for an allocator between two result files, such as those of two versions of Annex."""
    try:
        before, after = compare.load(a), compare.load(b)
        names = compare.subjects(before, after)
        if allocator:
            if allocator not in before.versions or allocator not in after.versions:
                raise compare.Unusable(f"{allocator} is not in both files")
            names = [allocator]
    except compare.Unusable as why:
        _fail_early(why)
    for name in names:
        show.changes(Console(), before, after, name)


@app.command("list")
def list_() -> None:
    """Lists the programs and the allocators, and what is missing here."""
    table = Table(title="Programs", title_justify="left")
    for heading in ("program", "suite", "kind", "what", "missing"):
        table.add_column(heading)
    for program in programs.all_programs():
        table.add_row(program.name, program.suite, program.kind, program.what, ", ".join(program.missing()))
    out = Console()
    out.print(table)
    for name in (*known.OURS, *known.PEERS):
        try:
            out.print(f"{name}: {known.find(name).version}", markup=False)
        except known.Unavailable as why:
            out.print(f"{name}: not here ({why})", markup=False)


if __name__ == "__main__":
    app()
