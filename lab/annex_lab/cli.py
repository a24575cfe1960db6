"""Runs programs under every allocator and says what each costs."""

# The command annex-lab: bench and list are here, what is done with results afterwards in cli_results.py.

import enum
import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from annex_lab import allocators as known
from annex_lab import cli_results, document, native, paths, programs, show, until
from annex_lab.attacks import cli as attacks_cli
from annex_lab.bench import Bench, Plan
from annex_lab.give_back import cli as give_back_cli
from annex_lab.journal import Journal
from annex_lab.outcome import Outcome
from annex_lab.programs import inputs, own
from annex_lab.programs.model import Context, Program
from annex_lab.report import Report
from annex_lab.sim import cli as sim_cli
from annex_lab.sim.figures import cli as figures_cli

app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__)
cli_results.register(app)
sim_cli.register(app)
figures_cli.register(app)
attacks_cli.register(app)
give_back_cli.register(app)
console = Console(stderr=True)


Suite = enum.Enum("Suite", {name: name for name in programs.SUITES}, type=str)  # a kind of programs, or a paper's
DEFAULT_SCALE = {Suite.quick: 0.05}
DEFAULT_ROUNDS = {Suite.quick: 30}
DEFAULT_ALLOCATORS = {
    Suite.quick: ["annex-solo", "annex", "core"],
    Suite.single: ["annex-solo", "core"],
    Suite.multi: ["annex", "core"],
    Suite.all: ["all"],
}  # of the others: ours and all peers


def _split(text: str | None) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()] if text else []


def _find(names: list[str], strict: bool) -> tuple[list[known.Allocator], list[dict[str, str]]]:
    """The allocators that can be measured here, and why the others can't; a name that means nothing ends it all."""
    found, absent = [], []
    for name in names:
        try:
            found.append(known.find_for_programs(name))
        except known.UnknownAllocator as why:
            raise typer.BadParameter(str(why)) from None
        except known.Unavailable as why:
            absent.append({"allocator": name, "why": str(why)})
            console.print(f"left out: {name}: {why}", style="red" if strict else "yellow", markup=False, soft_wrap=True)
    if not found:
        raise typer.BadParameter("no allocator is left to measure")
    return found, absent


def _fail_early(error: Exception, status: int = 2) -> NoReturn:
    console.print(str(error), style="red", markup=False, soft_wrap=True)
    raise typer.Exit(status)


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


def _cpus(text: str) -> tuple[int, ...]:
    numbers = _split(text)
    here = os.sched_getaffinity(0)
    if any(not number.isdecimal() or int(number) not in here for number in numbers):
        there_are = ",".join(map(str, sorted(here)))
        raise typer.BadParameter(f"--cpus takes numbers of CPUs that we may use ({there_are}): not {text!r}")
    return tuple(dict.fromkeys(map(int, numbers)))


def _each_with(counts: list[int], chosen: list[Program]) -> list[Program]:
    """Every multi-threaded program once with each number of threads, where several are asked for."""
    if len(counts) == 1:
        return chosen
    repeated = [[p.with_threads(count) for count in counts] if p.suite == "multi" else [p] for p in chosen]
    return [program for programs_ in repeated for program in programs_]


def _end(plan: Plan) -> list[float | int]:
    return [plan.until.half_width, plan.until.at_most_rounds] if plan.until else []


def _journal(plan: Plan, context: Context) -> Journal:
    """Named by all that the figures depend on."""
    what = {
        "programs": [[program.name, program.what] for program in plan.programs],
        "allocators": [[allocator.name, allocator.version, allocator.env] for allocator in plan.allocators],
        "plan": [plan.rounds, plan.retries, plan.count, plan.latency, plan.fitting, *_end(plan)],
        "context": [context.scale, context.threads, context.cpus],
    }
    return Journal(paths.BENCH / "journals", what)


@app.command()
def bench(
    command: Annotated[
        list[str] | None, typer.Argument(help="after --: a command of your own, instead of a suite")
    ] = None,
    suite: Annotated[Suite, typer.Option(help="which programs; annex-lab list shows what is in each")] = Suite.quick,
    allocators: Annotated[
        str,
        typer.Option(
            help="a,b,c; also NAME=/path/to/lib.so, and the words ours, core, peers, variants, all; "
            "default: Annex and the peers that suit the suite"
        ),
    ] = "",
    workloads: Annotated[str, typer.Option(help="x,y: only these programs, of whatever suite")] = "",
    rounds: Annotated[
        int | None, typer.Option(min=1, help="samples of each program under each allocator [default: 5, quick: 30]")
    ] = None,
    until_: Annotated[
        float | None,
        typer.Option(
            "--until",
            metavar="RATIO",
            help="0.02: after these rounds more, until the geometric means of CPU time are known within 2 %",
        ),
    ] = None,
    at_most_rounds: Annotated[
        int | None, typer.Option(help=f"where --until ends at the latest [default: {until.MOST_ROUNDS}]")
    ] = None,
    scale: Annotated[
        float | None, typer.Option(min=0.001, help="multiplies the work of every program [default: 1, quick: 0.05]")
    ] = None,
    threads: Annotated[
        str, typer.Option(help="threads of the multi-threaded programs; a,b,c: each once with each")
    ] = "2",
    cpus: Annotated[str, typer.Option(help="0,1: bind the programs to these CPUs")] = "",
    count: Annotated[bool, typer.Option("--count", help="also count instructions, cache misses (callgrind)")] = False,
    latency: Annotated[bool, typer.Option("--latency", help="also time every call of malloc and free")] = False,
    retries: Annotated[int, typer.Option(min=0, help="more runs in place of one that was disturbed")] = 2,
    patience: Annotated[float, typer.Option(min=0, help="seconds to wait for a quiet machine before a round")] = 3.0,
    stdin: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="standard input of a command of your own")
    ] = None,
    limit: Annotated[float, typer.Option(min=1, help="seconds after which a run is ended and counts as failed")] = 120,
    resume: Annotated[bool, typer.Option("--resume", help="go on where the same run was interrupted")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="write all samples and figures here")] = None,
    markdown_file: Annotated[Path | None, typer.Option("--markdown", help="write the tables here")] = None,
    report: Annotated[
        Path | None, typer.Option("--report", file_okay=False, help="write index.html, results.json and .md here")
    ] = None,
) -> None:
    """Measures programs side by side under the allocators: time, memory, page faults.

    The exit status is 0; 1 where a program failed under an allocator, or an allocator that was named is not there; 2
    for wrong usage; 127 where a command of your own is not found; 130 after Ctrl-C (what is done by then is reported,
    and the same command with --resume goes on).
    """
    counts, bound = _thread_counts(threads), _cpus(cpus)
    chosen = _each_with(counts, _programs(suite, _split(workloads), command or [], stdin))
    of_suite = not (workloads or command)
    if rounds is None:
        rounds = DEFAULT_ROUNDS.get(suite, 5) if of_suite else 5
    try:
        end = until.of_options(until_, at_most_rounds, rounds)
    except until.Wrong as why:
        _fail_early(why)
    default = DEFAULT_ALLOCATORS.get(suite, ["ours", "peers"]) if of_suite else ["ours", "core"]
    names = known.expand(_split(allocators) or default)
    known.build_missing(names)
    found, absent = _find(names, strict=bool(allocators))
    if end and len(found) < 2:
        _fail_early(until.Wrong(f"--until compares allocators: there is only {found[0].name}"))
    try:
        native.runner(), native.toucher()
        workload_folder = native.workloads()
    except native.BuildFailed as why:
        _fail_early(why)

    scratch = Path(tempfile.mkdtemp(prefix="annex-lab-")) / "run"
    if scale is None:
        scale = DEFAULT_SCALE.get(suite, 1.0) if of_suite else 1.0
    context = Context(inputs.folder(paths.DATA), scratch, workload_folder, scale, counts[0], limit, bound)
    plan = Plan(chosen, found, rounds, retries, patience, count, latency, fitting=not allocators, until=end)
    journal = _journal(plan, context)
    if resume and not journal.exists():
        console.print("Nothing of this run was interrupted: it starts from the beginning.")
    listener = show.listener(console, [program.name for program in chosen], plan.runs_each)

    def half_width(outcome: Outcome) -> float | None:
        widest = Report(document.so_far(outcome, chosen, found, context)).widest(until.METRIC)
        return widest and widest.half_width

    with listener:
        outcome = Bench(plan, context, listener, journal, resume, half_width).run()
    options = {
        "command": document.without_paths(sys.argv[1:]),
        "suite": suite.value if of_suite else None,
        "rounds": rounds,
        "scale": scale,
        "threads": counts,
        "cpus": list(bound) or None,
    }
    if end:
        options |= {"until": end.half_width, "at_most_rounds": end.at_most_rounds}
    results = document.of_run(outcome, chosen, found, absent, context, options)
    scratch.parent.rmdir()
    cli_results.write(results, json_file, markdown_file, report)
    show.tables(Console(width=max(130, console.width)), Report(results))
    if report:
        console.print(f"The report: {report / 'index.html'}", markup=False, soft_wrap=True)
    if outcome.interrupted:
        console.print("Interrupted. The same command with --resume goes on from here.")
        raise typer.Exit(130)
    if outcome.failures or (absent and allocators):
        raise typer.Exit(1)


@app.command("list")
def list_(
    suite: Annotated[Suite, typer.Option(help="only its programs")] = Suite.all,
    names: Annotated[bool, typer.Option("--names", help="only the programs' names, one a line")] = False,
) -> None:
    """Lists the programs and the allocators, and what is missing here."""
    chosen = programs.all_programs() if suite == Suite.all else programs.choose(suite.value)
    if names:
        print("\n".join(program.name for program in chosen if not program.by_name_only))
        return
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("program", "suite", "kind", "from", "what", "missing"):
        table.add_column(heading, no_wrap=True)
    for program in chosen:
        origin = " ".join([*program.groups, *(["quick"] if program.quick else [])])
        table.add_row(program.name, program.suite, program.kind, origin, program.what, ", ".join(program.missing()))
    out = Console(width=max(150, console.width))
    out.print(table)
    for name in known.expand(["all"]):
        try:
            out.print(f"{name}: {known.find(name).version}", markup=False)
        except known.Unavailable as why:
            out.print(f"{name}: not here ({why})", markup=False)


if __name__ == "__main__":
    app()
