"""What a program is to the lab: how its input is made, how it is run, how its output is compared."""

import dataclasses
import hashlib
import json
import os
import re
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Context:
    """What a program may depend on: the amount of work, the number of threads, where its files are."""

    data: Path  # generated inputs, kept between runs
    scratch: Path  # emptied before every sample
    workloads: Path  # folder of the workload programs
    scale: float = 1.0
    threads: int = 2
    limit_s: float = 120.0  # a run that takes longer is ended and counts as failed
    cpus: tuple[int, ...] = ()  # those that the program is bound to; none: any

    def work(self, amount: int) -> int:
        return max(1, round(amount * self.scale))


@dataclass(frozen=True)
class Command:
    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)
    stdin: Path | None = None
    times: int = 1  # runs in one sample: for programs too short to be timed once
    cwd: Path | None = None


@dataclass(frozen=True)
class Server:
    """A server measured under a client's load; only the server runs on the allocator."""

    command: Command
    ready: Callable[[], bool]
    client: list[str]
    score: Callable[[str], float]  # from the client's output, seconds a request: lower is better


def whole_output(stdout: bytes) -> str:
    return hashlib.sha256(stdout).hexdigest()[:16]


def sorted_output(stdout: bytes) -> str:
    """For programs whose threads print lines as they come."""
    return whole_output(b"\n".join(sorted(stdout.splitlines())))


def pack_output(stdout: bytes) -> str:
    """Of a pack of git's: how many objects are in it, and whether its checksum is right. Which deltas its threads find
    depends on their timing, under every allocator."""
    right = hashlib.sha1(stdout[:-20]).digest() == stdout[-20:]
    return f"{int.from_bytes(stdout[8:12], 'big')} objects, {'whole' if right else 'damaged'}"


def workload_output(stdout: bytes) -> str:
    """Of a workload's JSON line, what must be the same under every allocator."""
    line = json.loads(stdout)
    return f"{line['ops']} {line['checksum']}"


def workload_score(stdout: bytes) -> float:
    """Seconds an operation."""
    return json.loads(stdout)["score"]


# Folders that are the same everywhere, and tell nothing of the machine or its owner.
_PUBLIC = ("/usr/", "/bin/", "/lib/", "/etc/", "/dev/")


def _without_folders(argument: str, context: Context) -> str:
    """A path outside the system's folders by its last part alone, also as the value of an option (--in=/x/y, -I/x/y).

    What only looks like a path, such as awk's /x/{print}, stays: it does not exist, and neither does where it would be.
    """
    match = re.fullmatch(r"(-[\w-]+=?)?(/.+)", argument, re.DOTALL)
    if match is None or match[2].startswith(_PUBLIC):
        return argument
    path = Path(match[2])
    ours = any(path.is_relative_to(folder) for folder in (context.data, context.scratch, context.workloads))
    there = os.path.exists(path) or (path.parent != Path("/") and os.path.exists(path.parent))
    return (match[1] or "") + path.name if ours or there else argument


def _typed(argv: list[str], context: Context) -> str:
    return shlex.join([os.path.basename(argv[0]), *(_without_folders(part, context) for part in argv[1:])])


@dataclass(frozen=True)
class Program:
    name: str
    suite: str  # "single" or "multi": how many threads allocate; "own": a command of the user's
    what: str  # one line for people
    run: Callable[[Context], Command | Server]
    kind: str = "program"  # "program": a real one; "workload": one of ours
    needs: tuple[str, ...] = ()  # executables that must be on the path
    prepare: Callable[[Context], None] = lambda context: None  # makes inputs that are missing
    output: Callable[[bytes], str] = whole_output
    score: Callable[[bytes], float] | None = None
    # Its own libraries bring another allocator, so "glibc" means preloading libc itself.
    brings_allocator: bool = False
    # Of no suite, since its figures say little about allocators (why is in `what`); run when it is named.
    by_name_only: bool = False
    # Its output may differ from run to run: compared only where two runs under glibc agree.
    may_vary: bool = False
    threads: int | None = None  # its own number of threads, whatever the context's
    groups: tuple[str, ...] = ()  # the papers that measure it, or what it stands for: GROUPS in programs/__init__.py
    quick: bool = False  # of the quick suite
    quick_options: tuple[str, ...] = ()  # of a workload there: smaller structures, and more steps in them

    def with_options(self, options: tuple[str, ...]) -> "Program":
        """A workload of ours with options of its own: sizes of structures, which no scale changes."""

        def run(context: Context) -> Command:
            task = self.run(context)
            assert isinstance(task, Command)
            return dataclasses.replace(task, argv=[*task.argv, *options])

        return dataclasses.replace(self, run=run) if options else self

    def with_threads(self, threads: int) -> "Program":
        """The same with that many threads, under a name that says so."""

        def run(context: Context) -> Command | Server:
            return self.run(dataclasses.replace(context, threads=threads))

        return dataclasses.replace(self, name=f"{self.name}/{threads}", run=run, threads=threads)

    def command(self, context: Context) -> str:
        """What is run, as people would type it, without the folders of this machine; a server, then its client."""
        task = self.run(context)
        command = task.command if isinstance(task, Server) else task
        # The environment of a command of the user's own is the user's, and nobody else's business.
        settings = [] if self.suite == "own" else [f"{name}={shlex.quote(v)}" for name, v in command.env.items()]
        line = " ".join([*settings, _typed(command.argv, context)])
        if command.stdin:
            line += f" < {shlex.quote(command.stdin.name)}"
        return f"{line} <- {_typed(task.client, context)}" if isinstance(task, Server) else line

    def missing(self) -> list[str]:
        return [need for need in self.needs if shutil.which(need) is None and not Path(need).exists()]
