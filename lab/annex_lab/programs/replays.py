"""Redis without a client: a server that replays an append-only file of one command at its start, and then ends.

For the simulator, which runs one process. The commands go through the server's parser, dictionary and data types as a
client's do; sockets, the client's buffers and replies are not in it.
"""

import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from annex_lab.programs import inputs
from annex_lab.programs.model import Command, Context, Program

REQUESTS = 100_000
_FILE = "appendonly.aof.1.incr.aof"
_VALUE = "x" * 100  # bytes, as of the other Redis workloads
# What is timed is each command; those that take something out find what one command with many values put there.
_FILLED_BY = {"lpop": "rpush", "rpop": "rpush", "spop": "sadd"}
_AT_ONCE = 1000


def _encoded(words: Iterable[str]) -> str:
    words = list(words)
    return f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)


def _values(command: str, count: int) -> list[str]:
    """A set's members differ."""
    return [f"{number:012}" if command in ("sadd", "spop") else _VALUE for number in range(count)]


def commands(command: str, count: int) -> list[str]:
    values = _values(command, count)
    if command not in _FILLED_BY:
        lines = [_encoded([command, "key", value]) for value in values]
    else:
        lines = [
            _encoded([_FILLED_BY[command], "key", *values[at : at + _AT_ONCE]]) for at in range(0, count, _AT_ONCE)
        ]
        # A set gives random members away: as in a server's own file, they are named.
        lines += [_encoded(["srem", "key", value] if command == "spop" else [command, "key"]) for value in values]
    return [*lines, _encoded(["shutdown", "nosave", "now"])]


def _make(folder: Path, command: str, count: int) -> None:
    """Several may make it at the same time: the first to be done is taken."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix="part-", dir=folder.parent))
    (made / "appendonlydir").mkdir()
    (made / "appendonlydir" / _FILE).write_text("".join(commands(command, count)))
    (made / "appendonlydir" / "appendonly.aof.manifest").write_text(f"file {_FILE} seq 1 type i\n")
    try:
        made.rename(folder)
    except OSError:
        shutil.rmtree(made)


def _replay(command: str) -> Program:
    name = f"redis-replay-{command}"

    def place(context: Context) -> Path:
        return inputs.place(context, name, REQUESTS)

    def prepare(context: Context) -> None:
        if not place(context).exists():
            _make(place(context), command, context.work(REQUESTS))

    def run(context: Context) -> Command:
        options = {"port": "0", "unixsocket": str(context.scratch / "s"), "save": "", "appendonly": "yes"}
        # A thread of Debian's libjemalloc that wakes by the clock has no part in it.
        options |= {"dir": str(place(context)), "appendfsync": "no", "jemalloc-bg-thread": "no"}
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        return Command(["/usr/bin/redis-server", *words])

    return Program(
        name,
        "single",
        f"redis-server replays a file of {command.upper()}: for the simulator, which runs no client",
        run,
        needs=("redis-server",),
        prepare=prepare,
        output=lambda _stdout: "",
        brings_allocator=True,
        by_name_only=True,
    )


PROGRAMS = [_replay(command) for command in ("lpush", "rpush", "lpop", "rpop", "sadd", "spop")]
