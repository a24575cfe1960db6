"""The command annex-lab sim."""

import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from annex_lab import paths
from annex_lab.sim import cache, campaign, kernel_costs, machines, run, summary, validation
from annex_lab.sim.asked import Asked, Failed, described, ready, scratch_folder, write
from annex_lab.sim.energy import cli as energy

console = Console(stderr=True)


STOPPED = 130  # exit status after Ctrl-C: neither a result nor a failure


def _end(failed: Failed) -> NoReturn:
    console.print(str(failed), style="red", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(failed.status)


def _say(what: str) -> None:
    console.print(f"annex-lab sim: result {what}", style="yellow", markup=False, highlight=False, soft_wrap=True)


class _Shown:
    """Progress: instructions so far, their speed, and the time left where the total is known."""

    def __init__(self, total: int | None):
        self.bar = Progress(
            TextColumn("{task.fields[count]}"),
            *([BarColumn()] if total else []),
            TextColumn("{task.fields[speed]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self.task = self.bar.add_task("", total=total, count="", speed="")
        self.total = total

    def __call__(self, instructions: int, cycles: int) -> None:
        elapsed = self.bar.tasks[0].elapsed or 1e-9
        rate = instructions / elapsed
        left = f", {(self.total - instructions) / rate:.0f} s left" if self.total and instructions and rate else ""
        self.bar.update(
            self.task,
            completed=instructions,
            count=f"{instructions / 1e6:,.0f} million instructions, {cycles / 1e6:,.0f} million cycles",
            speed=f"{rate / 1e6:.0f} MIPS{left}",
        )


def sim(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            help="after --: the program and its arguments; {threads} becomes --threads; or a workload's sizes"
        ),
    ] = None,
    machine: Annotated[
        str, typer.Option(help="a preset (--machines lists them) or a TOML file [default: a core for each thread]")
    ] = "",
    hardware: Annotated[
        str, typer.Option(help=f"a unit beside the machine's cores: {', '.join(machines.hardware())}")
    ] = "",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="a parameter of the machine: l2.bytes=524288, support_core.queue=64; many times"),
    ] = None,
    threads: Annotated[int, typer.Option(min=1, max=1024, help="threads of the program")] = 1,
    allocator: Annotated[
        str, typer.Option(help="glibc, annex, annex-solo, jemalloc, ... or a library's path")
    ] = "glibc",
    workload: Annotated[str, typer.Option(help="a program of the workbench, instead of a command")] = "",
    scale: Annotated[float, typer.Option(min=0.0001, help="multiplies a workload's steps")] = 0.01,
    seed: Annotated[int, typer.Option(min=0, help="of random numbers, threads' start offsets, and the layout")] = 1,
    layout: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="where stack, heap, libraries and program lie; 0: as QEMU has them, at round addresses "
            "[default: the seed]",
        ),
    ] = None,
    expect: Annotated[int | None, typer.Option(min=1, help="instructions expected, for the time left")] = None,
    watchdog: Annotated[int, typer.Option(min=0, help="seconds without an instruction until it counts as hung")] = 60,
    stdin: Annotated[Path | None, typer.Option(exists=True, dir_okay=False, help="standard input")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="write all statistics here")] = None,
    lock_step: Annotated[
        bool, typer.Option("--lock-step", help="all instructions in the order of simulated time: a slow reference")
    ] = False,
    roi: Annotated[
        bool,
        typer.Option(
            "--roi",
            help="time and count the program's regions of interest alone (annex/region.h); what runs before warms",
        ),
    ] = False,
    cached: Annotated[
        bool, typer.Option("--cached", help="take the result of the very same run where there is one")
    ] = False,
    part: Annotated[
        bool,
        typer.Option(
            "--part", hidden=True, help="of a campaign: a run that fails leaves what it said in --json, and status 0"
        ),
    ] = False,
    list_machines: Annotated[bool, typer.Option("--machines", help="list the presets and end")] = False,
    check: Annotated[bool, typer.Option("--check", help="say why nothing can be simulated here, and end")] = False,
) -> None:
    """Runs an unmodified program on a simulated machine and says where its time went, and the allocator's part in it.

    Exit status: the program's own (128 + N after signal N); 2 for what cannot be simulated, a wrong machine, or an
    allocator for which its hardware would do nothing; 3 where only a part of the run was simulated (exec); 4 where an
    invariant of the hardware does not hold; 124 where it hung; 125 where the simulator itself failed; 127 where there
    is no such program; 130 after Ctrl-C. Statistics of a run that did not come to its end are written all the same,
    and marked.
    """
    if list_machines:
        Console().print("\n".join(machines.presets()))
        return
    if check:
        try:
            run.qemu()
        except run.CannotRun as why:
            _end(Failed(why))
        return
    words = tuple(command or ())
    if not workload and not words:
        _end(Failed("name either --workload or, after --, a program and its arguments"))
    if workload and words and not words[0].startswith("-"):
        _end(Failed(f"--workload {workload} is the program: after -- are options of its own, which {words[0]} is not"))
    asked = Asked(
        allocator,
        workload,
        () if workload else words,
        machine,
        hardware,
        tuple(settings or ()),
        threads,
        seed,
        scale,
        stdin,
        roi,
        words if workload else (),
        layout,
    )
    scratch = scratch_folder()
    try:
        status = _simulate(asked, scratch, expect, watchdog, json_file, cached, lock_step)
    except Failed as failed:
        if not (part and json_file):
            _end(failed)
        failure = campaign.Failure(
            workload, allocator, machine or campaign.AUTO, threads, seed, failed.status, str(failed)
        )
        json_file.write_text(json.dumps({"failure": asdict(failure)}, indent=1) + "\n")
        status = failed.status
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    raise typer.Exit(0 if part and status != STOPPED else status)


def _simulate(
    asked: Asked,
    scratch: Path,
    expect: int | None,
    watchdog: int,
    json_file: Path | None,
    cached: bool,
    lock_step: bool,
) -> int:
    who, machine = ready(asked, scratch)
    shown = _Shown(expect)

    def simulate() -> run.Simulated:
        with shown.bar:
            return run.run(who, machine, scratch, asked.seed, watchdog, shown, lock_step=lock_step, layout=asked.layout)

    try:
        run.qemu()  # before a bar is shown
        if cached:
            done = cache.simulated(
                who, machine, scratch, asked.threads, asked.seed, simulate, _say, lock_step, asked.layout
            )
        else:
            done = simulate()
    except run.CannotRun as why:
        raise Failed(why) from None
    results = described(asked, who, done)
    if json_file:
        write(results, json_file)
    sys.stdout.flush()
    summary.show(Console(stderr=True), results)
    for violation in results["violations"]:
        _say(f"not to be trusted: {violation}")
    return _status(done.status, results)


def _status(status: int, results: dict) -> int:
    if results["ended"] == "exec":
        return 3
    if results["ended"] == "stopped":
        return STOPPED
    if results["violations"]:
        return 4
    return status if status >= 0 else 128 - status


def validate(
    report: Annotated[Path, typer.Option(help="where the page goes")] = paths.ROOT / "docs/simulator-validation.md",
    rounds: Annotated[int, typer.Option(min=1, help="of each measurement on this machine")] = 12,
    billions: Annotated[float, typer.Option(min=0.001, help="instructions of the longest run")] = 5.0,
    only: Annotated[
        str, typer.Option(help=f"print some parts, and write no page: {', '.join(validation.parts(1, 1))}")
    ] = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="of --only: put the parts into the page in place of what it has of them")
    ] = False,
    speed_against: Annotated[
        Path | None, typer.Option(help="print the speed beside another build's: its plugin, libannex-sim.so")
    ] = None,
    commit: Annotated[str, typer.Option(help="of --speed-against: the commit whose presets that build reads")] = "HEAD",
) -> None:
    """Validates the simulator against references, and writes the errors down; 40 to 55 minutes.

    The exit status is 1 where a bound is not met, and the page says which.
    """
    names = [name for name in only.split(",") if name]
    if unknown := set(names) - set(validation.parts(rounds, billions)):
        _end(Failed(f"no part of the page is called {', '.join(sorted(unknown))}"))
    try:
        if speed_against:
            text, failed = validation.speed_against(speed_against, commit)
        elif names and replace:
            text, failed = "", validation.replace(report, names, rounds, billions)
        elif names:
            text, failed = validation.only(names, rounds, billions)
        else:
            text, failed = "", validation.validate(report, rounds, billions)
    except run.CannotRun as why:
        _end(Failed(why))
    if text:
        Console(soft_wrap=True).print(text, markup=False, highlight=False)
    if failed:
        raise typer.Exit(1)


def register(app: typer.Typer) -> None:
    app.command("validate")(validate)
    app.command("sim")(sim)
    app.command("sim-report")(campaign.sim_report)
    app.command("energy")(energy.energy)
    app.command("kernel-costs")(kernel_costs.kernel_costs)
