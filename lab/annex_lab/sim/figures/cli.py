"""The command annex-lab figures."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from annex_lab import allocators as known
from annex_lab import paths
from annex_lab.sim import run
from annex_lab.sim.figures import metrics, runner, write
from annex_lab.sim.figures.figure import Choice, Figure
from annex_lab.sim.figures.runs import Parts, Spec
from annex_lab.sim.figures.values import Results

FOLDER = paths.BUILD / "sim" / "figures"
STOPPED = 130
console = Console(stderr=True)
figures = typer.Typer(no_args_is_help=True, help="Makes papers' figures again, from simulated runs.")


@figures.callback()
def _papers() -> None:
    """Makes papers' figures again, from simulated runs."""


def _split(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _of_names(names: list[str], all_figures: list[Figure]) -> list[Figure]:
    there = {figure.name: figure for figure in all_figures}
    if unknown := [name for name in names if name not in there]:
        raise typer.BadParameter(f"no figure is called {', '.join(unknown)}; there are: {', '.join(there)}")
    return [there[name] for name in dict.fromkeys(names)] or all_figures


def _checked(names: tuple[str, ...], there: list[str], what: str) -> tuple[str, ...]:
    if unknown := [name for name in names if name not in there]:
        raise typer.BadParameter(f"no {what} is called {', '.join(unknown)}; there are: {', '.join(there)}")
    return names


def _seeds(text: str) -> tuple[int, ...]:
    if not text or not all(part.isdecimal() for part in _split(text)) or not _split(text):
        raise typer.BadParameter(f"--seeds takes numbers with commas between them: not {text!r}")
    return tuple(map(int, _split(text)))


def shared(chosen: list[Figure], choice: Choice) -> list[Spec]:
    """The runs of all the figures, each once."""
    return list(dict.fromkeys(spec for figure in chosen if not figure.missing() for spec in figure.runs(choice)))


def results(specs: list[Spec], parts: Parts) -> Results:
    measured, why = {}, {}
    for spec in specs:
        found = parts.find(spec)
        if found.part is None:
            why[spec] = found.why
        else:
            measured[spec] = metrics.measure(found.part)
    return Results(measured, why)


def _simulate(left: list[Spec], parts: Parts, jobs: int) -> None:
    total = sum(spec.weight for spec in left)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[remaining]}"),
        TimeElapsedColumn(),
        console=console,
    )
    task = bar.add_task("runs", total=len(left), remaining="")
    worked = 0.0

    def done(spec: Spec) -> None:
        nonlocal worked
        worked += spec.weight
        minutes = (bar.tasks[0].elapsed or 0) * (total - worked) / worked / 60
        bar.update(task, advance=1, remaining=f"about {minutes:.0f} min left", description=f"{spec.workload}")

    with bar:
        runner.run(left, parts, jobs, done)


def _listed(all_figures: list[Figure], choice: Choice, parts: Parts) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("figure", "what", "runs", "left", "state"):
        table.add_column(heading, justify="right" if heading in ("runs", "left") else "left")
    for figure in all_figures:
        specs = shared([figure], choice)
        left = [spec for spec in specs if parts.find(spec).left]
        state = figure.missing() or ("ready to be made" if left else "all runs are there")
        table.add_row(figure.name, figure.title, str(len(specs)), str(len(left)), state)
    return table


def speedmalloc(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="which figures: 9 17 [all]")] = None,
    list_: Annotated[bool, typer.Option("--list", help="list the figures, and what is missing, and end")] = False,
    jobs: Annotated[int, typer.Option(min=1, help="runs at a time, each on a host core")] = 2,
    scale_factor: Annotated[float, typer.Option(min=0.001, help="multiplies the work of every run")] = 1.0,
    seeds: Annotated[str, typer.Option(help="a,b,c: of random numbers and threads' start offsets")] = "1,2,3",
    workloads: Annotated[str, typer.Option(help="x,y: only these")] = "",
    allocators: Annotated[str, typer.Option(help="a,b,c [default: jemalloc,tcmalloc,mimalloc3,annex]")] = "",
    out: Annotated[Path, typer.Option(file_okay=False, help="parts, tables, pictures and figures.md go here")] = (
        FOLDER / "speedmalloc"
    ),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="say what would be run, and end")] = False,
) -> None:
    """Makes SpeedMalloc's figures again, with the paper's numbers beside ours. The same command goes on where it ended.

    Exit status: 1 where a number is missing (the tables say which and why), 2 for wrong usage, 130 after Ctrl-C.
    """
    from annex_lab.sim.figures.speedmalloc import FIGURES, common

    chosen = _of_names(names or [], FIGURES)
    for name in _split(allocators):
        try:
            known.find(name)
        except known.UnknownAllocator as why:
            raise typer.BadParameter(str(why)) from None
        except known.Unavailable:
            pass  # the run says so
    choice = Choice(
        common.SCALES,
        _split(allocators) or common.ALLOCATORS,
        _checked(_split(workloads), list(common.SCALES), "workload"),
        _seeds(seeds),
        scale_factor,
    )
    parts = Parts(out / "parts")
    if list_:
        Console().print(_listed(chosen, choice, parts))
        return
    try:
        run.qemu()
    except run.CannotRun as why:
        console.print(f"annex-lab figures: {why}", style="red", markup=False, soft_wrap=True)
        raise typer.Exit(2) from None
    specs = shared(chosen, choice)
    left = [spec for spec in specs if parts.find(spec).left]
    console.print(f"{len(specs)} runs, of which {len(left)} are left")
    if dry_run:
        for spec in left:
            print(shlex.join(["annex-lab", *spec.arguments]))
        return
    try:
        _simulate(left, parts, jobs)
    except runner.Stopped:
        console.print("Stopped. The same command goes on from here.")
        raise typer.Exit(STOPPED) from None
    if not make(chosen, FIGURES, choice, results(specs, parts), out):
        raise typer.Exit(1)


def make(chosen: list[Figure], all_figures: list[Figure], choice: Choice, found: Results, out: Path) -> bool:
    """Writes the figures and the index. False where a number is missing."""
    whole = True
    for figure in chosen:
        if why := figure.missing():
            console.print(f"Figure {figure.name} is missing: {why}", style="yellow", markup=False, soft_wrap=True)
            continue
        cells = figure.cells(choice, found)
        if not cells:
            console.print(f"Figure {figure.name}: nothing of it was asked for", soft_wrap=True)
            continue
        write.write(figure, cells, out, shlex.join(["annex-lab", *sys.argv[1:]]))
        without = sum(cell.ours is None for cell in cells)
        whole = whole and not without
        print(out / f"{figure.name}.md")
        if without:
            console.print(f"Figure {figure.name}: {without} of {len(cells)} numbers are missing", style="yellow")
    print(write.index(all_figures, out))
    return whole


figures.command("speedmalloc")(speedmalloc)


def register(app: typer.Typer) -> None:
    app.add_typer(figures, name="figures")
