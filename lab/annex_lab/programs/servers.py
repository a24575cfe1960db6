"""Servers under load. Only the server runs on the allocator: its CPU time and memory are what is compared."""

import csv
import io
import math
import socket
from pathlib import Path

from annex_lab.programs.model import Command, Context, Program, Server

REDIS_TESTS = "set,get,lpush,rpush,lpop,rpop,sadd,spop,hset,zadd"
LEAST = 8000  # requests: the client's clock counts milliseconds, and fewer may take none


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
            return True
        except OSError:
            return False


def redis_score(output: str, only: str | None = None) -> float:
    """The geometric mean over the tests (or one of them) of seconds a request, from redis-benchmark --csv."""
    rows = csv.DictReader(io.StringIO(output))
    rates = [float(row["rps"]) for row in rows if only is None or row["test"].lower() == only]
    if not rates or not all(math.isfinite(rate) and rate > 0 for rate in rates):
        raise ValueError(f"redis-benchmark gave no figures{f' for {only}' if only else ''}")
    return math.exp(-sum(math.log(rate) for rate in rates) / len(rates))


def _redis(
    name: str, what: str, tests: str, requests: int, keys: int, io_threads: int = 1, only: str | None = None, **more
) -> Program:
    """`tests` are the client's, in its order, each of so many requests; `only`: the one whose score it is."""

    def run(context: Context) -> Server:
        address = context.scratch / "redis.sock"
        argv = [
            "/usr/bin/redis-server",
            "--port",
            "0",
            "--unixsocket",
            str(address),
            "--save",
            "",
            "--appendonly",
            "no",
            "--io-threads",
            str(io_threads),
            "--dir",
            str(context.scratch),
        ]
        client = [
            "redis-benchmark",
            "-s",
            str(address),
            "-t",
            tests,
            "-n",
            str(max(LEAST, context.work(requests))),
            "-c",
            "20",
            "-P",
            "16",
            "-r",
            str(keys),
            "-d",
            "100",
            "--csv",
        ]
        return Server(Command(argv), lambda: _answers(address), client, lambda output: redis_score(output, only))

    # Debian's redis-server links Debian's libjemalloc.
    return Program(
        name,
        "multi",
        what,
        run,
        needs=("redis-server", "redis-benchmark"),
        brings_allocator=True,
        output=lambda _stdout: "",
        **more,
    )


def _one_command(command: str, what: str, before: str | None = None, **more) -> Program:
    """A command alone, or after the one that fills what it empties: then memory and CPU time are both's, the score
    is the second's."""
    tests = f"{before},{command}" if before else command
    return _redis(f"redis-{command}", what, tests, 1_000_000, 1_000_000, only=command, groups=("speedmalloc",), **more)


PROGRAMS = [
    _redis("redis", "ten commands, one thread serving", REDIS_TESTS, 40000, 100000),
    _one_command("lpush", "LPUSH to one list", quick=True),
    _one_command("rpush", "RPUSH to one list"),
    _one_command("lpop", "LPOP of what LPUSH put there", "lpush"),
    _one_command("rpop", "RPOP of what RPUSH put there", "rpush"),
    _one_command("sadd", "SADD to one set"),
    _one_command("spop", "SPOP of what SADD put there", "sadd"),
    _redis(
        "redis-io-threads",
        "two threads for input and output: they spin, so CPU time is luck",
        REDIS_TESTS,
        40000,
        100000,
        io_threads=2,
        by_name_only=True,
    ),
]
