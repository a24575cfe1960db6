"""One simulated run: QEMU's user mode with our plugin, in surroundings that are the same every time."""

import contextlib
import functools
import json
import os
import stat
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from annex_lab import paths, sample
from annex_lab.sim import layout as layouts
from annex_lab.sim import machines, surroundings

PLUGIN = paths.RELEASE / "libannex-sim.so"
PARKED = paths.RELEASE / "libannex-parked.so"  # sim/guest/offload.h
QEMU = paths.BUILD / "qemu" / "bin" / "qemu-x86_64"  # tools/qemu builds it
# All that QEMU can do, but string instructions that glibc would use for everything if they were called fast: QEMU runs
# them an element at a time.
CPU = "max,-erms,-fsrm"
OF_QEMU = ("LD_PRELOAD", "GLIBC_TUNABLES")  # variables that QEMU has for itself
# Annex's usual reservation is more than all of the program's addresses; of small ones it chains several if it must.
RESERVE = "4G"
OF_THE_HOST = ("host_s", "mips", "host_cpu_s", "host_peak_kib")  # results that differ from run to run
DEFECT = 125  # exit status where the simulator itself failed (sim/guest/last_resort.h)


@dataclass(frozen=True)
class Build:
    """A simulator, and the presets that it reads."""

    plugin: Path = PLUGIN
    presets: Path = machines.PRESETS

    @property
    def tool(self) -> Path:
        return self.plugin.with_name("annex-machine")


OURS = Build()


class CannotRun(Exception):
    """What is missing, in one line that says what to do."""


@dataclass(frozen=True)
class Simulated:
    results: dict | None  # as sim/guest/results.cpp writes them; None: there was nothing to write yet
    status: int  # the program's or the plugin's: 2 wrong machine, 124 hang, 125 defect, 130 stopped; negative: a signal
    machine_text: str = ""


@dataclass(frozen=True)
class Guest:
    argv: list[str]
    library: str = ""  # preloaded; "" for none
    env: dict[str, str] = field(default_factory=dict)
    stdin: Path | None = None
    cwd: Path | None = None
    told_clock: bool = True  # it finds a file that says how fast the time stamp counter is
    roi: bool = False  # only its regions of interest (annex/region.h) are timed and counted


@functools.cache
def version_of(qemu: str) -> str:
    """The first line of what it says, asked once a process."""
    return subprocess.run([qemu, "--version"], capture_output=True, text=True).stdout.splitlines()[0]


def qemu() -> str:
    for needed in (QEMU, PLUGIN):
        if not needed.exists():
            raise CannotRun(f"the simulator is not built ({needed.relative_to(paths.ROOT)} is missing): make sim")
    return str(QEMU)


def parameters(machine: Path, build: Build = OURS) -> dict:
    """The machine with all its parameters; raises CannotRun where the file is wrong."""
    done = subprocess.run([build.tool, "--presets", build.presets, machine], capture_output=True, text=True)
    if done.returncode != 0:
        raise CannotRun(done.stderr.strip().removeprefix("annex-machine: "))
    return json.loads(done.stdout)


def layout_of(seed: int, layout: int | None) -> int:
    """Its number: the seed's, unless another one is named."""
    return seed if layout is None else layout


def parked(machine: dict) -> int:
    """How many threads lend their data to the calls of as many support cores (sim/qemu/parked.c)."""
    unit = machine.get("support_core", {"cores": 0})  # older builds have none
    return unit["cores"] if unit["cores"] and unit["context"] == "parked" else 0


@contextlib.contextmanager
def _no_terminal(stdout):
    """Where the program is to write: the same, or, for a terminal or /dev/null, a pipe from which it is passed on.

    C's library asks of each character device whether it is a terminal, a system call more, and buffers accordingly.
    """
    if stdout is not None or not stat.S_ISCHR(os.fstat(1).st_mode):
        yield stdout
        return
    passes_on = subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True)
    try:
        yield passes_on.stdin
    finally:
        passes_on.stdin.close()
        passes_on.wait()


def run(
    guest: Guest,
    machine: Path,
    scratch: Path,
    seed: int = 1,
    watchdog_s: int = 60,
    progress: Callable[[int, int], None] = lambda instructions, cycles: None,
    stdout=None,
    lock_step: bool = False,
    build: Build = OURS,
    layout: int | None = None,
) -> Simulated:
    """Runs the program to its end. Ctrl-C ends it, with the results so far.

    In lock-step every instruction of every core takes effect in the order of simulated time: slow, and a reference.
    The layout is the seed's unless another one is named (layout.py).
    """
    binary, whole = qemu(), parameters(machine, build)
    places = layouts.numbered(layout_of(seed, layout))
    scratch.mkdir(parents=True, exist_ok=True)
    out = scratch / "results.json"
    progress_read, progress_write = os.pipe()
    control_read, control_write = os.pipe()
    options = {
        "machine": machine,
        "presets": build.presets,
        "out": out,
        "seed": seed,
        "watchdog": watchdog_s,
        "progress": progress_write,
        "control": control_read,
        **({"lockstep": 1} if lock_step else {}),
        **({"roi": 1} if guest.roi else {}),
        **({"heap": places.gap} if places.gap else {}),
    }
    plugin = ",".join([str(build.plugin), *(f"{name}={value}" for name, value in options.items())])
    argv = [binary, "-plugin", plugin, "-cpu", CPU, *places.addresses, "-seed", str(seed)]
    if lock_step:
        argv.append("-one-insn-per-tb")
    settings = dict(guest.env)
    lenders = parked(whole)
    if lenders > 1:
        settings["ANNEX_PARKED"] = str(lenders)
    # The linker runs the constructors of the last one first: the parked thread is to find an allocator that is ready.
    if library := " ".join(filter(None, (str(PARKED) if lenders else "", guest.library))):
        settings["LD_PRELOAD"] = library
    else:
        argv += ["-U", "LD_PRELOAD"]
    if "GLIBC_TUNABLES" not in settings:
        argv += ["-U", "GLIBC_TUNABLES"]
    libraries = surroundings.libraries_of(guest.argv[0], [binary, "-cpu", CPU], settings)
    argv += ["-L", str(surroundings.root(scratch / "root", whole, guest.told_clock, libraries))]
    # QEMU's own: see kill in sim/qemu/plugin.cpp; and huge pages for the machine's state, of which there is much.
    inherited = {"LD_PRELOAD": str(build.plugin), "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.arena_max=1"}
    base = sample.environment(inherited)
    unpadded = {name: value for name, value in base.items() if name not in OF_QEMU} | settings
    settings |= surroundings.padding(unpadded, guest.argv, places.lower)
    # -E takes a list: a value with a comma comes by QEMU's own environment, which it passes on.
    for name, value in settings.items():
        if "," in value and name != "LD_PRELOAD":
            inherited[name] = value
        else:
            argv += ["-E", f"{name}={value}"]
    stdin = os.open(guest.stdin or os.devnull, os.O_RDONLY)
    passed_on = contextlib.ExitStack()
    try:
        process = subprocess.Popen(
            [*argv, *guest.argv],
            stdin=stdin,
            stdout=passed_on.enter_context(_no_terminal(stdout)),
            env=base | inherited,
            cwd=guest.cwd,
            pass_fds=(progress_write, control_read),
            preexec_fn=surroundings.before_start,
            start_new_session=True,
        )
        os.close(progress_write)
        os.close(control_read)
        with os.fdopen(progress_read) as lines:
            try:
                for line in lines:
                    instructions, cycles = line.split()
                    progress(int(instructions), int(cycles))
            except KeyboardInterrupt:
                os.close(control_write)
                control_write = -1
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status = os.waitstatus_to_exitcode(status)
    finally:
        if control_write >= 0:
            os.close(control_write)
        os.close(stdin)
        passed_on.close()
    results = None
    with contextlib.suppress(OSError, ValueError):
        results = json.loads(out.read_text())
        results["layout"] = places.number
        results["host_peak_kib"] = usage.ru_maxrss
        results["host_cpu_s"] = usage.ru_utime + usage.ru_stime
    return Simulated(results, status)
