"""One run of a program in tools/ under one allocator: what it said, what it used, its resident set over time."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from annex_lab import allocators as known
from annex_lab import native, paths, sample
from annex_lab.allocators import Allocator
from annex_lab.quiet import Watch
from annex_lab.sample import LIBC, RunFailed

JEMALLOC_BACKGROUND = "jemalloc-background"  # with the thread of its own that gives back
NEVER_PURGING = "annex-never-purging"  # keeps what it has, but for calls that ask for it
# Of these names: whose they are, and with which settings.
SET = {
    JEMALLOC_BACKGROUND: ("jemalloc", {"MALLOC_CONF": "background_thread:true"}),
    NEVER_PURGING: ("annex", {"ANNEX_PURGE_DELAY": "-1"}),
}
DEFAULT = (
    "glibc",
    *known.OURS,
    known.HARDENED,
    JEMALLOC_BACKGROUND,
    "mimalloc3",
    "snmalloc",
    "tcmalloc",
)
SAMPLE_S = 0.05  # between two looks at the resident set
PAGE_KIB = os.sysconf("SC_PAGESIZE") // 1024


def find(name: str) -> Allocator:
    """As allocators.find_for_programs, and those with settings of their own; raises Unavailable."""
    short = name.partition("=")[0]
    if short not in SET:
        return known.find_for_programs(name)
    whose, settings = SET[short]
    base = known.find(name if "=" in name else whose)
    env = known.merged(base.env, settings)
    return Allocator(short, base.library, base.version, env, base.flags, base.companions)


def compiled(name: str) -> Path:
    """tools/NAME.c compiled into build/bench, where what is there is older than it or a header; raises BuildFailed."""
    source, binary = paths.ROOT / "tools" / f"{name}.c", paths.BENCH / name
    with native.alone():
        headers = [paths.ROOT / "tools" / shared for shared in ("blocks.h", "times.h")]
        newest = max(file.stat().st_mtime for file in (source, *headers))
        if not binary.exists() or binary.stat().st_mtime < newest:
            command = ["cc", "-O2", "-Wall", "-pthread", str(source), "-o", str(binary)]
            try:
                done = subprocess.run(command, capture_output=True, text=True)
            except FileNotFoundError:
                raise native.BuildFailed(f"{name} cannot be compiled: there is no cc here") from None
            if done.returncode != 0:
                raise native.BuildFailed(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return binary


@dataclass
class Said:
    """What a program said and used."""

    words: dict[str, str] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)  # the unit is the end of each name
    series: dict[str, list[float]] = field(default_factory=dict)
    cpu_s: float = 0.0  # in all
    minor_faults: int = 0
    foreign_cpu_s: float = 0.0  # used by others meanwhile
    resident: list[tuple[float, int]] = field(default_factory=list)  # (seconds since the start, KiB), where sampled


WORDS = ("served", "given_back_by", "checksum")  # the rest are numbers; a checksum has more digits than a float holds


def parse(text: str) -> Said:
    """A program's lines; raises RunFailed where one is none of them."""
    said = Said()
    for line in text.splitlines():
        name, *rest = line.split()
        try:
            if name in WORDS:
                said.words[name] = line.partition(" ")[2]
            elif len(rest) == 1 and name != "in_use_kib":
                said.values[name] = float(rest[0])
            else:
                said.series[name] = [float(one) for one in rest]
        except ValueError:
            raise RunFailed(f"said what means nothing: {line[:80]}") from None
    return said


def _resident_kib(process: int) -> int | None:
    try:
        with open(f"/proc/{process}/statm") as file:
            return int(file.read().split()[1]) * PAGE_KIB
    except (OSError, IndexError):
        return None


def _until_ended(process: subprocess.Popen, said: Said, limit_s: float, sampled: bool) -> int:
    """Waits, and looks at the resident set meanwhile; the exit status as subprocess has it."""
    start = time.monotonic()
    looks = 0
    while True:
        number, status, usage = os.wait4(process.pid, os.WNOHANG)
        if number:
            said.cpu_s = usage.ru_utime + usage.ru_stime
            said.minor_faults = usage.ru_minflt  # (ru_maxrss would be that of the lab, where it has more)
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode
        now = time.monotonic() - start
        if now > limit_s:
            raise RunFailed(f"ran longer than {limit_s:g} s")
        if sampled and (resident := _resident_kib(process.pid)):
            said.resident.append((now, resident))
        looks += 1
        time.sleep(max(0.0, start + looks * SAMPLE_S - time.monotonic()))


def _end(process: subprocess.Popen) -> None:
    if process.returncode is None:
        process.kill()
        process.wait()


def _complaint(said: Said, allocator: Allocator) -> str | None:
    """A figure must not go under another allocator's name."""
    served = Path(said.words.get("served", "?"))
    if allocator.library is None:
        return None if served.name == LIBC else f"malloc is served by {served.name}"
    return None if served.resolve() == allocator.library.resolve() else f"malloc is served by {served.name}"


def run(
    program: Path, arguments: Iterable[object], allocator: Allocator, limit_s: float, sampled: bool = False
) -> Said:
    """Raises RunFailed where the program does not end well, or another allocator served it."""
    env = sample.environment(allocator.env)
    if allocator.library:
        env["LD_PRELOAD"] = allocator.preload
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        watch = Watch().start()
        process = subprocess.Popen(
            [str(program), *map(str, arguments)], env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err
        )
        used = Said()
        try:
            status = _until_ended(process, used, limit_s, sampled)
        finally:
            _end(process)
        foreign_s = watch.stop()
        out.seek(0)
        err.seek(0)
        last = err.read().strip().splitlines()[-1:]
        if status != 0:
            how = f"exited with {status}" if status > 0 else f"was ended by {signal.Signals(-status).name}"
            raise RunFailed(": ".join([how, *last]))
        said = parse(out.read())
    if why := _complaint(said, allocator):
        raise RunFailed(why)
    said.cpu_s, said.minor_faults, said.resident = used.cpu_s, used.minor_faults, used.resident
    said.foreign_cpu_s = foreign_s
    return said
