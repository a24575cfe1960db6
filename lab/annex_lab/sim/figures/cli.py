"""The command annex-lab figures."""

import functools
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from annex_lab import allocators as known
from annex_lab import paths
from annex_lab.sim import run
from annex_lab.sim.campaign import count_of
from annex_lab.sim.figures import host, metrics, page, runner, told, write
from annex_lab.sim.figures.figure import Choice, Figure, Paper
from annex_lab.sim.figures.host import Measurement
from annex_lab.sim.figures.papers import PAPERS
from annex_lab.sim.figures.runs import Parts, Spec
from annex_lab.sim.figures.values import Results

FOLDER = paths.BUILD / "sim" / "figures"
STOPPED = 130
console = Console(stderr=True)
figures = typer.Typer(no_args_is_help=True)


@figures.callback()
def _papers() -> None:
    """Makes papers' figures again, from simulated runs; some are measured on this machine."""


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
    made = (spec for figure in chosen if not figure.missing() for spec in figure.runs(figure.chosen(choice)))
    return list(dict.fromkeys(made))


def measured_for(chosen: list[Figure], choice: Choice) -> list[Measurement]:
    """On this machine, for all the figures, each once."""
    made = (one for figure in chosen if not figure.missing() for one in figure.measurements(figure.chosen(choice)))
    return list(dict.fromkeys(made))


@dataclass(frozen=True)
class Work:
    """What is asked for of a paper's figures, and where it goes."""

    paper: Paper
    chosen: list[Figure]
    choice: Choice
    out: Path

    @functools.cached_property
    def parts(self) -> Parts:
        return Parts(self.out / "parts")

    def runs(self) -> list[Spec]:
        return shared(self.chosen, self.choice)

    def left(self) -> list[Spec]:
        parts = self.parts
        return [spec for spec in self.runs() if parts.find(spec).left]

    def measurements(self) -> list[Measurement]:
        return measured_for(self.chosen, self.choice)

    def left_to_measure(self) -> list[Measurement]:
        return [one for one in self.measurements() if one.find(self.parts.folder).left]

    def results(self) -> Results:
        measured, why = {}, {}
        found = {spec: (self.parts.find(spec), metrics.measure) for spec in self.runs()}
        found |= {one: (one.find(self.parts.folder), host.results) for one in self.measurements()}
        for what, (result, read) in found.items():
            if result.part is None:
                why[what] = result.why
            else:
                measured[what] = read(result.part)
        return Results(measured, why)


def _simulate(works: "list[Work]", jobs: int) -> None:
    """What is left of each, one after the other, with one bar."""
    left = {work.paper.name: work.left() for work in works}
    everything = [spec for specs in left.values() for spec in specs]
    total = sum(spec.weight for spec in everything)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[remaining]}"),
        TimeElapsedColumn(),
        console=console,
    )
    task = bar.add_task("runs", total=len(everything), remaining="")
    worked = 0.0

    def done(spec: Spec) -> None:
        nonlocal worked
        worked += spec.weight
        minutes = (bar.tasks[0].elapsed or 0) * (total - worked) / worked / 60
        bar.update(task, advance=1, remaining=f"about {minutes:.0f} min left", description=f"{spec.workload}")

    with bar:
        for work in works:
            runner.run(left[work.paper.name], work.parts, jobs, done)


def _measure(works: "list[Work]") -> bool:
    """What is left of each, on this machine, after all simulations: it must not share it. False where one failed."""
    whole = True
    for work in works:
        for one in work.left_to_measure():
            console.print(f"Measuring on this machine, which should do nothing else: {len(one.workloads)} programs")
            try:
                one.measure(work.parts.folder)
            except host.Failed as why:
                console.print(str(why), style="red", markup=False, soft_wrap=True)
                whole = False
    return whole


def _hours(parts: Parts, left: list[Spec]) -> str:
    """About how long they take one host core, where runs of the same workloads are there already."""
    seconds = parts.cpu_seconds(left)
    return "" if not left else "?" if seconds is None else f"{seconds / 3600:.1f}"


def _listed(works: "list[Work]") -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0))
    for heading in ("paper", "figure", "what"):
        table.add_column(heading)
    for heading in ("runs", "left", "CPU h"):
        table.add_column(heading, justify="right")
    table.add_column("state", min_width=22)
    for work in works:
        for figure in work.chosen:
            alone = Work(work.paper, [figure], work.choice, work.out)
            runs = len(alone.runs()) + len(alone.measurements())
            to_simulate = alone.left()
            left = len(to_simulate) + len(alone.left_to_measure())
            state = figure.missing() or ("ready to be made" if left else "all runs are there")
            if not figure.missing() and alone.measurements():
                state += ", on this machine"
            table.add_row(
                work.paper.name, figure.name, figure.title, str(runs), str(left), _hours(work.parts, to_simulate), state
            )
    return table


ListThem = Annotated[bool, typer.Option("--list", help="list the figures, and what is missing, and end")]
Jobs = Annotated[int, typer.Option(min=1, help="runs at a time, each on a host core")]
ScaleFactor = Annotated[float, typer.Option(min=0.001, help="multiplies the work of every run")]
Seeds = Annotated[str, typer.Option(help="a,b,c: of random numbers, threads' start offsets, and layouts")]
Rounds = Annotated[int, typer.Option(min=1, help="of what is measured on this machine")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="say what would be run, and end")]


def choice_of(
    paper: Paper,
    allocators: str = "",
    workloads: str = "",
    seeds: str = "1,2,3",
    scale_factor: float = 1.0,
    rounds: int = 5,
) -> Choice:
    for name in _split(allocators):
        try:
            known.find(name)
        except known.UnknownAllocator as why:
            raise typer.BadParameter(str(why)) from None
        except known.Unavailable:
            pass  # the run says so
    return Choice(
        paper.scales,
        _split(allocators) or paper.allocators,
        _checked(_split(workloads), list(paper.scales), "workload"),
        _seeds(seeds),
        scale_factor,
        rounds,
        asked_for=bool(_split(allocators)),
        sizes=paper.sizes,
        in_software=paper.in_software,
        one_seed=paper.one_seed,
    )


def _do(works: list[Work], list_: bool, jobs: int, dry_run: bool) -> bool:
    """False where a number is missing."""
    if list_:
        Console().print(_listed(works))
        return True
    simulated = sum(len(work.runs()) for work in works)
    left = [spec for work in works for spec in work.left()]
    to_measure = [one for work in works for one in work.left_to_measure()]
    if simulated:
        try:
            run.qemu()
        except run.CannotRun as why:
            console.print(f"annex-lab figures: {why}", style="red", markup=False, soft_wrap=True)
            raise typer.Exit(2) from None
        console.print(f"{simulated} runs, of which {len(left)} are left")
    if to_measure:
        console.print(f"{count_of(len(to_measure), 'measurement')} on this machine left")
    if dry_run:
        for one in [*left, *to_measure]:
            print(shlex.join(["annex-lab", *one.arguments]))
        return True
    try:
        if left:
            _simulate(works, jobs)
        measured = _measure(works)
        return all([make(work, work.results()) for work in works]) and measured
    except (runner.Stopped, KeyboardInterrupt):
        console.print("Stopped. The same command goes on from here.")
        raise typer.Exit(STOPPED) from None


def make(work: Work, found: Results) -> bool:
    """Writes the figures and the index. False where a number is missing."""
    whole = True
    for figure in work.chosen:
        name = f"{work.paper.title}'s {figure.called}" if figure.kind else figure.name
        if why := figure.missing():
            console.print(f"{name} is missing: {why}", style="yellow", markup=False, soft_wrap=True)
            continue
        cells = figure.cells(figure.chosen(work.choice), found)
        if not cells:
            console.print(f"{name}: nothing of it was asked for", soft_wrap=True)
            continue
        layouts = found.over_layouts(figure.runs(figure.chosen(work.choice)))
        write.write(work.paper, figure, cells, work.out, shlex.join(["annex-lab", *sys.argv[1:]]), layouts)
        without = sum(cell.ours is None for cell in cells)
        whole = whole and not without
        print(work.out / f"{figure.name}.md")
        if without:
            console.print(f"{name}: {without} of {len(cells)} numbers are missing", style="yellow")
    print(write.index(work.paper, work.out))
    return whole


def _command(paper: Paper) -> Callable[..., None]:
    """annex-lab figures PAPER."""

    def command(
        names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="which figures [all]")] = None,
        list_: ListThem = False,
        jobs: Jobs = 2,
        scale_factor: ScaleFactor = 1.0,
        seeds: Seeds = "1,2,3",
        rounds: Rounds = 5,
        workloads: Annotated[str, typer.Option(help="x,y: only these")] = "",
        allocators: Annotated[str, typer.Option(help=f"a,b,c [default: {','.join(paper.allocators)}]")] = "",
        out: Annotated[Path, typer.Option(file_okay=False, help="parts, tables, pictures and figures.md go here")] = (
            FOLDER / paper.name
        ),
        dry_run: DryRun = False,
    ) -> None:
        chosen = _of_names(names or [], paper.figures)
        choice = choice_of(paper, allocators, workloads, seeds, scale_factor, rounds)
        if not _do([Work(paper, chosen, choice, out)], list_, jobs, dry_run):
            raise typer.Exit(1)

    command.__doc__ = (
        f"Makes {paper.title}'s figures again, with the paper's numbers beside ours. The same command goes on where "
        "it ended.\n\nExit status: 1 where a number is missing (the tables say which and why), 2 for wrong usage, 130 "
        "after Ctrl-C."
    )
    return command


@figures.command("all")
def every_paper(
    list_: ListThem = False,
    jobs: Jobs = 2,
    scale_factor: ScaleFactor = 1.0,
    seeds: Seeds = "1,2,3",
    rounds: Rounds = 5,
    out: Annotated[Path, typer.Option(file_okay=False, help="a folder for each paper goes here")] = FOLDER,
    dry_run: DryRun = False,
) -> None:
    """Makes the figures of all papers again. The same command goes on where it ended.

    Exit status: 1 where a number is missing (the tables say which and why), 2 for wrong usage, 130 after Ctrl-C.
    """
    works = [
        Work(paper, paper.figures, choice_of(paper, "", "", seeds, scale_factor, rounds), out / paper.name)
        for paper in PAPERS
    ]
    whole = _do(works, list_, jobs, dry_run)
    if not list_ and not dry_run:
        print(page.write(PAPERS, out, out / "index.html"))
    if not whole:
        raise typer.Exit(1)


@figures.command("pages")
def pages(
    write: Annotated[bool, typer.Option("--write", help="make those anew that differ")] = False,
    docs: Annotated[Path, typer.Option(help="a folder of templates, with its campaigns/")] = paths.ROOT / "docs",
) -> None:
    """Compares the pages of docs/ that are made of figures' data with that data; status 1 where one differs."""
    if found := told.differences(docs, write):
        print("\n".join(found))
        raise typer.Exit(1)


@figures.command("page")
def one_page(
    made: Annotated[Path, typer.Option("--from", file_okay=False, help="a folder for each paper is here")] = FOLDER,
    out: Annotated[Path | None, typer.Option(dir_okay=False, help="[default: index.html there]")] = None,
) -> None:
    """Writes one HTML page of all the figures that are made, with their pictures in it."""
    print(page.write(PAPERS, made, out or made / "index.html"))


for _paper in PAPERS:
    figures.command(_paper.name)(_command(_paper))


def register(app: typer.Typer) -> None:
    app.add_typer(figures, name="figures")
