"""Commands on results that are there already: report, merge, compare, break-even, ladder."""

from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from annex_lab import break_even, compare, document, show
from annex_lab.report import Report

console = Console(stderr=True)


def write(results: dict, json_file: Path | None, markdown_file: Path | None, folder: Path | None) -> None:
    """The files that were asked for; a folder gets all three kinds."""
    wanted_json, wanted_markdown = [json_file], [markdown_file]
    if folder:
        from annex_lab import html  # its pictures take a second to load, and most runs want none

        html.write(results, folder)
        wanted_json.append(folder / "results.json")
        wanted_markdown.append(folder / "results.md")
    for path in filter(None, wanted_json):
        document.save(results, path)
    for path in filter(None, wanted_markdown):
        path.write_text(Report(results).as_markdown())


def _fail(why: Exception) -> NoReturn:
    console.print(str(why), style="red", markup=False, soft_wrap=True)
    raise typer.Exit(2)


def _draw_scaling(content: dict, path: Path) -> None:
    from annex_lab import html

    if path.suffix not in (".svg", ".png"):
        raise typer.BadParameter(f"{path}: a picture's name ends with .svg or .png", param_hint="--scaling")
    if not html.draw_scaling(content, path):
        raise typer.BadParameter(
            "no program ran with three numbers of threads: annex-lab bench --threads 1,2,4", param_hint="--scaling"
        )


def report(
    results: Annotated[Path, typer.Argument(help="of annex-lab bench --json")],
    folder: Annotated[Path | None, typer.Option("--report", file_okay=False, help="write the HTML page here")] = None,
    markdown_file: Annotated[Path | None, typer.Option("--markdown", help="write the tables here")] = None,
    scaling_file: Annotated[
        Path | None,
        typer.Option("--scaling", dir_okay=False, help="draw here how programs scale with threads: .svg, .png"),
    ] = None,
) -> None:
    """Makes the report of a result file again: tables here, or Markdown, the HTML page, a picture of scaling."""
    try:
        content = document.load(results)
    except document.Unusable as why:
        _fail(why)
    write(content, None, markdown_file, folder)
    if scaling_file:
        _draw_scaling(content, scaling_file)
    show.tables(Console(width=max(130, console.width)), Report(content))


def merge(
    results: Annotated[list[Path], typer.Argument(help="of annex-lab bench --json, each with other programs")],
    json_file: Annotated[Path | None, typer.Option("--json", help="write the whole here")] = None,
    markdown_file: Annotated[Path | None, typer.Option("--markdown", help="write the tables here")] = None,
    folder: Annotated[
        Path | None, typer.Option("--report", file_okay=False, help="write index.html, results.json and .md here")
    ] = None,
    made_by: Annotated[str, typer.Option(help="the command that made them all, for the report")] = "",
) -> None:
    """Joins the results of several runs with different programs, such as a campaign's, into one."""
    try:
        content = document.merged({str(path): document.load(path) for path in results}, made_by)
    except document.Unusable as why:
        _fail(why)
    if not (json_file or markdown_file or folder):
        raise typer.BadParameter("say where to: --json, --markdown or --report")
    write(content, json_file, markdown_file, folder)


def compare_(
    a: Annotated[Path, typer.Argument(help="results of annex-lab bench --json")],
    b: Annotated[Path, typer.Argument(help="later ones")],
    allocator: Annotated[str, typer.Option(help="whose; default: every Annex that both have")] = "",
    agree: Annotated[
        float | None,
        typer.Option("--agree", min=0, help="exit with 1 unless all geometric means agree within this many per cent"),
    ] = None,
) -> None:
    """Shows what changed for an allocator between two result files, such as those of two versions of Annex."""
    try:
        before, after = compare.load(a), compare.load(b)
        names = compare.subjects(before, after)
        if allocator:
            if allocator not in before.versions or allocator not in after.versions:
                raise document.Unusable(f"{allocator} is not in both files")
            names = [allocator]
    except document.Unusable as why:
        _fail(why)
    show.machines(Console(), before, after)
    for name in names:
        show.changes(Console(), before, after, name)
    if agree is not None:
        apart = compare.disagreements(before, after)
        show.disagreements(Console(), apart, agree)
        if apart and abs(apart[0].change) > agree / 100:
            raise typer.Exit(1)


def break_even_(
    results: Annotated[Path, typer.Argument(help="of annex-lab bench --latency --json")],
    offload: Annotated[str, typer.Option(help="whose calls cost more")] = "annex-offload-handshake",
    yardstick: Annotated[str, typer.Option(help="than whose")] = "mimalloc3",
    ghz: Annotated[float, typer.Option(min=0.1, help="the processor's clock, to make cycles of nanoseconds")] = 3.0,
    miss: Annotated[float, typer.Option(min=1, help="cycles that a cache or TLB miss costs")] = 214.0,
) -> None:
    """NextGen-Malloc's model (its section 4.1): the misses that offloading must save a call to pay for itself."""
    try:
        content = document.load(results)
    except document.Unusable as why:
        _fail(why)
    found = break_even.of_results(content, offload, yardstick, ghz, miss)
    if not found:
        _fail(document.Unusable(f"no program has latencies of both {offload} and {yardstick}: bench --latency"))
    caption = f"on {content['machine']['cpu']}; the paper's assumption: 268 cycles a call, so 1.25 misses"
    table = Table(box=box.SIMPLE_HEAD, caption=escape(caption))
    for heading in ("program", "calls", "cycles more a call", "misses to save a call"):
        table.add_column(heading, justify="left" if heading == "program" else "right")
    for program, estimate in found.items():
        table.add_row(program, f"{estimate.calls:,}", f"{estimate.cycles_a_call:.0f}", f"{estimate.misses_a_call:.2f}")
    Console().print(table)


def ladder_(
    results: Annotated[Path, typer.Argument(help="of annex-lab bench --allocators ladder --latency --json")],
    folder: Annotated[Path, typer.Option("--report", file_okay=False, help="write ladder.md and ladder.svg here")],
) -> None:
    """What each step of the offload flavour's protocols saves, as one table and one picture."""
    from annex_lab import ladder  # its picture takes a second to load

    try:
        written = ladder.write(document.load(results), folder)
    except (document.Unusable, ladder.Incomplete) as why:
        _fail(why)
    print("\n".join(map(str, written)))


def register(app: typer.Typer) -> None:
    app.command("report")(report)
    app.command("merge")(merge)
    app.command("compare")(compare_)
    app.command("break-even")(break_even_)
    app.command("ladder")(ladder_)
