"""One sample: a program run once under one allocator, and what it used."""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from annex_lab import native
from annex_lab.programs.model import Command, Context, Program, Server

# Settings of the allocators themselves that a person may want to try; everything else of the caller's stays outside.
PASSED_ON = ("ANNEX_", "MIMALLOC_", "MALLOC_CONF", "GLIBC_TUNABLES", "_RJEM_")
LIBC = "libc.so.6"


class RunFailed(Exception):
    """The program crashed, hung or could not be started."""


@dataclass
class Sample:
    wall_s: float
    user_s: float
    sys_s: float
    peak_rss_kib: int
    minor_faults: int
    output: str = ""
    score: float | None = None  # seconds a unit of work, where the program says how much it did
    voluntary_switches: int = 0
    involuntary_switches: int = 0
    mean_rss_kib: int | None = None  # over the time that it ran; None where it was over at once
    support_cpu_s: float = 0.0  # of user_s + sys_s, what Annex's support thread used

    @property
    def pace(self) -> float:
        """What a person waits: seconds a unit of work, or seconds."""
        return self.wall_s if self.score is None else self.score

    @property
    def cpu_s(self) -> float:
        return self.user_s + self.sys_s


def environment(extra: dict[str, str]) -> dict[str, str]:
    """A small environment, the same wherever the lab is started from."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
    base = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8", "TZ": "UTC"}
    return {**base, **kept, **extra}


class Toucher:
    """Lets a separate small process touch and release memory before a run, so that the host has given it to us.

    The kernel tells the host of free memory no sooner than two seconds after it was freed, so what was touched just
    before is still ours.
    """

    FRESH_S = 0.5

    def __init__(self) -> None:
        self._mib, self._when = 0, 0.0

    def touch(self, mib: int) -> None:
        if mib > self._mib or time.monotonic() - self._when > self.FRESH_S:
            subprocess.run([str(native.toucher()), str(mib)], check=False)
            self._mib, self._when = mib, time.monotonic()


def parse_report(text: str) -> Sample:
    """The runner's report; of several runs in one sample the fastest counts, and the highest peak and mean."""
    rows = [[int(field) for field in line.split()[1:]] for line in text.splitlines() if line.startswith("run ")]
    if not rows:
        raise RunFailed("was never run")
    for row in rows:
        if row[6] != 0:
            how = f"exited with {row[6]}" if row[6] < 1000 else f"was ended by {signal.Signals(row[6] - 1000).name}"
            raise RunFailed(how)
    wall, user, system, _, faults, _, _, voluntary, involuntary = min(rows)[:9]
    peak = max(row[3] for row in rows)
    mean = max(row[9] for row in rows)
    return Sample(
        wall / 1e9,
        user / 1e6,
        system / 1e6,
        peak,
        faults,
        voluntary_switches=voluntary,
        involuntary_switches=involuntary,
        mean_rss_kib=mean or None,
    )


def _ended(process: subprocess.Popen, limit_s: float) -> bool:
    """Waits for the end at once; Popen.wait with a limit asks again and again, and finds out up to 50 ms later."""
    handle = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        return bool(poll.poll(limit_s * 1000))
    finally:
        os.close(handle)


@contextlib.contextmanager
def _bound_to(cpus: tuple[int, ...]) -> Iterator[None]:
    """What is started within inherits it. (taskset would be one more program that the environment reaches.)"""
    before = os.sched_getaffinity(0)
    try:
        if cpus:
            os.sched_setaffinity(0, cpus)
        yield
    finally:
        os.sched_setaffinity(0, before)


class _Started:
    """The runner with its program; its own files are in the scratch folder."""

    def __init__(self, command: Command, preload: str, context: Context, extra: dict[str, str]):
        scratch = context.scratch
        self.report, self.out, self.err = scratch / "report", scratch / "stdout", scratch / "stderr"
        self.report.unlink(missing_ok=True)
        argv = [native.runner(), self.report, preload, command.times, command.stdin or "/dev/null", self.out, self.err]
        with _bound_to(context.cpus):
            self.process = subprocess.Popen(
                [str(part) for part in argv] + command.argv,
                env=environment({**command.env, **extra}),
                cwd=command.cwd or scratch,
                start_new_session=True,
            )

    def program_pid(self) -> int | None:
        text = self.report.read_text() if self.report.exists() else ""
        return int(text.split()[1]) if text.startswith("pid ") and "\n" in text else None

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def finish(self, limit_s: float) -> Sample:
        if not _ended(self.process, limit_s):
            raise RunFailed(f"ran longer than {limit_s:.0f} s")
        status = self.process.wait()
        if status != 0:
            raise RunFailed(f"could not be started (runner's status {status})")
        try:
            return parse_report(self.report.read_text())
        except RunFailed as why:
            last = self.err.read_text(errors="replace").strip().splitlines()[-1:]
            raise RunFailed(" | ".join([str(why), *last])) from None


def _run_command(program: Program, command: Command, preload: str, context: Context, extra: dict[str, str]) -> Sample:
    started = _Started(command, preload, context, extra)
    try:
        sample = started.finish(context.limit_s)
    finally:
        started.kill()
    stdout = started.out.read_bytes()
    sample.output = program.output(stdout)
    if program.score:
        sample.score = program.score(stdout)
    return sample


def _run_server(server: Server, preload: str, context: Context, extra: dict[str, str]) -> Sample:
    """Wall time is the client's; CPU time and memory are the server's, from its start to its end."""
    started = _Started(server.command, preload, context, extra)
    try:
        deadline = time.monotonic() + 10
        while not server.ready():
            if time.monotonic() > deadline or started.process.poll() is not None:
                raise RunFailed("the server did not come up")
            time.sleep(0.01)
        begin = time.monotonic()
        try:
            client = subprocess.run(
                server.client, capture_output=True, text=True, timeout=context.limit_s, env=environment({})
            )
        except subprocess.TimeoutExpired:
            raise RunFailed(f"the client ran longer than {context.limit_s:.0f} s") from None
        wall = time.monotonic() - begin
        if client.returncode != 0:
            raise RunFailed(f"the client failed: {(client.stderr or client.stdout).strip()[-200:]}")
        pid = started.program_pid()
        if pid is not None:
            os.kill(pid, signal.SIGTERM)
        sample = started.finish(10)
    finally:
        started.kill()
    sample.wall_s = wall
    sample.score = server.score(client.stdout)
    return sample


def _support_cpu_s(file: Path) -> float:
    """From the statistics that the program and its children have left; 0 where there are none."""
    if not file.exists():
        return 0.0
    return sum(json.loads(line)["support_cpu_us"] for line in file.read_text().splitlines()) / 1e6


def _take_off(found: Sample, times: int, file: Path) -> None:
    """What the floor took to make its memory ready (native/floor.c): no part of what the program took."""
    if not file.exists():
        return
    rows = [[float(field) for field in line.split()] for line in file.read_text().splitlines()]
    wall, cpu = (sum(column) / times for column in zip(*rows, strict=True))
    found.wall_s = max(0.0, found.wall_s - wall)
    found.sys_s = max(0.0, found.sys_s - cpu)


def run(
    program: Program, context: Context, preload: str, extra: dict[str, str] | None = None, has_support: bool = False
) -> Sample:
    """One run of the program with that library preloaded ("" for none); raises RunFailed.

    A library with a support thread is asked what that has used; not in programs so short that they are run many times
    in one sample, where asking would show, and there is no support thread.
    """
    task = program.run(context)
    statistics = context.scratch / "statistics"
    if has_support and (isinstance(task, Server) or task.times == 1):
        extra = {**(extra or {}), "ANNEX_STATS": "json", "ANNEX_STATS_FILE": str(statistics.absolute())}
    ready = context.scratch / "ready"
    if extra and "ANNEX_FLOOR_MIB" in extra:
        extra = {**extra, "ANNEX_FLOOR_FILE": str(ready.absolute())}
    shutil.rmtree(context.scratch, ignore_errors=True)
    context.scratch.mkdir(parents=True)
    if program.brings_allocator and not preload:
        preload = LIBC
    if isinstance(task, Server):
        found = _run_server(task, preload, context, extra or {})
    else:
        found = _run_command(program, task, preload, context, extra or {})
        _take_off(found, task.times, ready)
    found.support_cpu_s = _support_cpu_s(statistics)
    return found
