"""A simulated run as a person asks for it: made ready, described, and found where the very same was run before."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from annex_lab import allocators as known
from annex_lab import native, paths, programs
from annex_lab.programs import inputs
from annex_lab.programs.model import Command, Context
from annex_lab.sim import cache, campaign, guest, invariants, machines, run, suited, surroundings


class Failed(Exception):
    """There is no result; the message says why, the status is the command's."""

    def __init__(self, why: object, status: int = 2):
        super().__init__(f"annex-lab sim: {why}")
        self.status = status


@dataclass(frozen=True)
class Asked:
    """A program of the workbench by name, or a command; the machine "" is one with a core for each thread."""

    allocator: str
    workload: str = ""
    command: tuple[str, ...] = ()
    machine: str = ""
    hardware: str = ""
    settings: tuple[str, ...] = ()
    threads: int = 1
    seed: int = 1
    scale: float = 0.01
    stdin: Path | None = None
    roi: bool = False  # only its regions of interest
    options: tuple[str, ...] = ()  # of a workload of ours, beside those that the lab gives it: sizes
    layout: int | None = None  # None: the seed's


def scratch_folder() -> Path:
    """Its name is of the same length each time, as it is in the program's environment and arguments."""
    return Path(tempfile.mkdtemp(prefix="annex-sim-"))


def _check_options(argv: list[str]) -> None:
    """What a workload would refuse, it refuses before the run, in a line of its own."""
    done = subprocess.run([*argv, "--help"], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f"{Path(argv[0]).name}: {done.stderr.strip()}")


def _workload(asked: Asked, scratch: Path) -> run.Guest:
    name = asked.workload
    try:
        (program,) = programs.choose("all", [name])
    except programs.UnknownProgram as why:
        raise Failed(why) from None
    if missing := program.missing():
        raise Failed(f"{name} needs {', '.join(missing)}, which is not installed")
    if asked.options and program.kind != "workload":
        raise Failed(f"{name} takes no options after --: only the programs of workloads/ do")
    context = Context(inputs.folder(paths.DATA), scratch / "work", native.workloads(), asked.scale, asked.threads)
    context.scratch.mkdir()
    program.prepare(context)
    task = program.with_options(asked.options).run(context)
    if not isinstance(task, Command):
        raise Failed(f"{name} is a server with a client: simulate the server with a command of your own")
    if asked.options:
        _check_options(task.argv)
    argv = guest.command(task.argv)
    return run.Guest(argv, env=dict(task.env), stdin=task.stdin, cwd=task.cwd or context.scratch)


def _library(asked: Asked, machine: Path) -> tuple[str, dict[str, str]]:
    """What is preloaded, and the environment that it needs; a path to a library is one of one's own."""
    allocator = asked.allocator
    if "/" in allocator:
        if not Path(allocator).is_file():
            raise Failed(f"{allocator}: no such library")
        return str(Path(allocator).resolve()), {}
    try:
        known.build_missing([allocator])
        found = known.find(allocator)
    except known.Unavailable as why:
        raise Failed(why) from None
    if found.takes_one_call_at_a_time and asked.threads > 1 and not run.parked(run.parameters(machine)):
        raise Failed(
            f"{allocator} has no lock: --threads 1, or a support core that runs all calls (--hardware speedmalloc)"
        )
    return found.preload, {**found.env, **({"ANNEX_RESERVE": run.RESERVE} if known.is_ours(found.name) else {})}


def ready(asked: Asked, scratch: Path) -> tuple[run.Guest, Path]:
    """The program and the machine's file; raises Failed."""
    try:
        machine = machines.find(asked.machine or machines.for_threads(asked.threads), scratch)
        if asked.hardware or asked.settings:
            machine = machines.changed(machine, asked.hardware, list(asked.settings), scratch)
        if asked.workload:
            who = _workload(asked, scratch)
        else:
            argv = guest.command([part.replace("{threads}", str(asked.threads)) for part in asked.command])
            who = run.Guest(argv, stdin=asked.stdin)
    except guest.NotFound as why:
        raise Failed(why, 127) from None
    except (machines.UnknownMachine, guest.CannotSimulate) as why:
        raise Failed(why) from None
    library, env = _library(asked, machine)
    who = run.Guest(who.argv, library, {**env, **who.env}, who.stdin, who.cwd, roi=asked.roi)
    _refuse_unsuited(asked.allocator, who, machine)
    return who, machine


def _refuse_unsuited(allocator: str, who: run.Guest, machine: Path) -> None:
    """What would run to its end, and whose numbers would be another allocator's, or zeros."""
    try:
        if who.library:
            suited.check_library(Path(who.library))
        if run.OURS.tool.exists():  # else the run says what is missing
            suited.check_markers(allocator, _code_of(who), run.parameters(machine))
    except (suited.Unsuited, run.CannotRun) as why:
        raise Failed(why) from None


def _code_of(who: run.Guest) -> Iterator[Path]:
    """Files that may have the allocator's code: the preloaded one, or else the program with its libraries."""
    if who.library:
        yield Path(who.library)
        return
    yield Path(who.argv[0])
    yield from map(Path, surroundings.libraries_of(who.argv[0], [run.qemu(), "-cpu", run.CPU], who.env).values())


def described(asked: Asked, who: run.Guest, done: run.Simulated) -> dict:
    """The results with what was asked for, as --json writes them; raises Failed where there are none."""
    results = done.results
    if results is None:
        if done.status == 2:
            raise Failed("refused, as said above")  # by the plugin
        if done.status == run.DEFECT:
            raise Failed("no results, as said above", run.DEFECT)
        raise Failed(f"ended with status {done.status} before there was anything to report", 1)
    if results["complete"] and results.get("region", {}).get("regions") == 0:
        raise Failed("the program came to no region of interest: ANNEX_REGION_BEGIN() of annex/region.h begins one")
    results["command"] = [Path(who.argv[0]).name, *who.argv[1:]]
    results["allocator"]["name"] = asked.allocator
    results["requested_threads"] = asked.threads
    results["requested_machine"] = asked.machine or campaign.AUTO
    results["requested_hardware"] = asked.hardware
    results["workload"], results["scale"] = asked.workload, asked.scale
    results["workload_options"] = list(asked.options)
    results["simulator"] = cache.digest(run.PLUGIN)[:12]
    results["exit_status"] = done.status
    results["violations"] = invariants.violations(results)
    return results


def write(results: dict, file: Path) -> None:
    file.write_text(json.dumps(results, indent=1) + "\n")


def of_an_earlier_run(asked: Asked) -> dict | None:
    """As described() of the run itself would be, if that is in the cache; never simulates, never builds a peer."""
    scratch = scratch_folder()
    try:
        if "/" not in asked.allocator:
            known.find(asked.allocator)
        who, machine = ready(asked, scratch)
        found = cache.find(cache.ingredients(who, machine, scratch, asked.threads, asked.seed, layout=asked.layout))
        return described(asked, who, found) if found else None
    except (Failed, known.Unavailable, cache.CannotCache, run.CannotRun, native.BuildFailed):
        return None  # the run itself will say so
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
