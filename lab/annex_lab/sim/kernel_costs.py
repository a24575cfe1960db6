"""What the kernel takes on this machine, for a simulated machine's [system] and [pages]: annex-lab kernel-costs.

native/kernel-costs.c times one kind after the other; here its times become parameters: what a kind takes beside others
is a difference. What was measured is kept in build/sim/kernel-costs.json, so that the machine `host` stays the same
from run to run.
"""

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import typer

from annex_lab import native, paths

KEPT = paths.BUILD / "sim" / "kernel-costs.json"

Times = dict[str, float]  # by kind, in ns


def _switch(t: Times) -> float:
    """A yield of two threads on one CPU is two yields and two switches."""
    return t["yield-switch"] / 2 - t["yield"]


def _handed_over(t: Times) -> float:
    """What waking and waiting take in a hand-over on one CPU, a half each."""
    return (t["hand-over"] - t["futex-wake"] - _switch(t)) / 2


@dataclass(frozen=True)
class Cost:
    """A parameter in us from times in ns; `how`: in the words of native/kernel-costs.c's kinds."""

    name: str
    how: str
    of: Callable[[Times], float]


COSTS = (
    Cost("system.call_us", "plain (getppid)", lambda t: t["plain"]),
    Cost("system.clock_us", "clock-vdso", lambda t: t["clock-vdso"]),
    Cost("system.yield_us", "yield", lambda t: t["yield"]),
    Cost("system.sleep_us", "sleep, of the processor's time", lambda t: t["sleep"]),
    Cost("system.futex_again_us", "futex-again", lambda t: t["futex-again"]),
    Cost("system.futex_wait_us", "(hand-over - futex-wake - a switch) / 2, on one CPU", _handed_over),
    Cost("system.futex_wake_us", "futex-wake, of nobody", lambda t: t["futex-wake"]),
    Cost("system.futex_woken_us", "wake-sleeper - futex-wake", lambda t: t["wake-sleeper"] - t["futex-wake"]),
    Cost("system.wake_us", "wake-to-run - wake-sleeper", lambda t: t["wake-to-run"] - t["wake-sleeper"]),
    Cost("system.switch_us", "yield-switch / 2 - yield", _switch),
    Cost("system.clone_us", "create (pthread_create)", lambda t: t["create"]),
    Cost(
        "system.exit_us",
        "create-join - create - a hand-over's wait and wake - two switches",
        lambda t: t["create-join"] - t["create"] - 2 * _handed_over(t) - 2 * _switch(t),
    ),
    Cost("system.mmap_us", "mmap, of 64 KiB", lambda t: t["mmap"]),
    Cost("system.munmap_us", "munmap, nothing resident", lambda t: t["munmap"]),
    Cost("system.mremap_us", "mremap, a move, nothing resident", lambda t: t["mremap"]),
    Cost("system.mprotect_us", "mprotect, growing into a reservation", lambda t: t["mprotect"]),
    Cost("system.brk_us", "brk, growing", lambda t: t["brk"]),
    Cost("system.madvise_us", "dontneed, nothing resident", lambda t: t["dontneed"]),
    Cost(
        "system.page_us",
        "mean of munmap-page and dontneed-page: 256 resident pages less 64",
        lambda t: (t["munmap-page"] + t["dontneed-page"]) / 2,
    ),
    Cost("system.free_page_us", "free-page: 256 resident pages less 64", lambda t: t["free-page"]),
    Cost(
        "system.shoot_down_us",
        "dontneed-one-beside - dontneed-one: another CPU runs a thread, or not",
        lambda t: t["dontneed-one-beside"] - t["dontneed-one"],
    ),
    Cost("system.interrupt_us", "interrupt: the longest gap of the other thread", lambda t: t["interrupt"]),
    Cost("pages.fault_us", "fault - clear", lambda t: t["fault"] - t["clear"]),
    Cost("pages.file_fault_us", "fault-file: to write, shared", lambda t: t["fault-file"]),
    Cost("pages.huge_fault_us", "fault-huge - clear-huge", lambda t: t["fault-huge"] - t["clear-huge"]),
)


def measure() -> Times:
    """By kind: a tenth of its many short batches take less."""
    out = subprocess.run([native.kernel_costs()], capture_output=True, text=True, check=True).stdout
    return {name: float(low) for name, low, _, _ in (line.split() for line in out.splitlines())}


def times(again: bool = False) -> Times:
    if not again:
        try:
            return json.loads(KEPT.read_text())
        except (OSError, ValueError):
            pass
    measured = measure()
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    KEPT.write_text(json.dumps(measured, indent=1) + "\n")
    return measured


def costs(measured: Times) -> dict[str, float]:
    """By parameter, in us; without those whose kinds this machine could not show."""
    found = {}
    for cost in COSTS:
        try:
            found[cost.name] = max(0.0, cost.of(measured) / 1000)
        except KeyError:
            continue
    return found


def toml(measured: Times | None = None) -> list[str]:
    """Lines of a machine file: its tables [system] and [pages]."""
    found = costs(times() if measured is None else measured)
    lines = []
    for table in ("system", "pages"):
        lines.append(f"[{table}]")
        lines += [f"{name.split('.')[1]} = {us:.3f}" for name, us in found.items() if name.startswith(f"{table}.")]
    return lines


def kernel_costs(
    again: Annotated[bool, typer.Option("--again", help="measure, even if it was measured before")] = False,
    as_toml: Annotated[bool, typer.Option("--toml", help="lines for a machine file, in place of the table")] = False,
) -> None:
    """Measures what the kernel takes on this machine: system calls, wake-ups, page faults, shoot-downs; seconds."""
    measured = times(again)
    if as_toml:
        typer.echo("\n".join(toml(measured)))
        return
    found = costs(measured)
    typer.echo("| parameter | here, us | how |\n|---|---|---|")
    for cost in COSTS:
        here = f"{found[cost.name]:.3f}" if cost.name in found else "-"
        typer.echo(f"| `{cost.name}` | {here} | {cost.how} |")
