"""Servers under load. Only the server runs on the allocator: its CPU time and memory are what is compared."""

import csv
import io
import math
import socket
from pathlib import Path

from annex_lab.programs.model import Command, Context, Program, Server

REDIS_TESTS = "set,get,lpush,rpush,lpop,rpop,sadd,spop,hset,zadd"


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
            return True
        except OSError:
            return False


def redis_score(output: str) -> float:
    """The geometric mean over the tests of requests a second, from redis-benchmark --csv."""
    rates = [float(row["rps"]) for row in csv.DictReader(io.StringIO(output))]
    if not rates:
        raise ValueError("redis-benchmark gave no figures")
    return math.exp(sum(math.log(rate) for rate in rates) / len(rates))


def _redis(name: str, what: str, io_threads: int, **more) -> Program:
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
            REDIS_TESTS,
            "-n",
            str(context.work(40000)),
            "-c",
            "20",
            "-P",
            "16",
            "-r",
            "100000",
            "-d",
            "100",
            "--csv",
        ]
        return Server(Command(argv), lambda: _answers(address), client, redis_score)

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


PROGRAMS = [
    _redis("redis", "ten commands, one thread serving", 1),
    _redis(
        "redis-io-threads", "two threads for input and output: they spin, so CPU time is luck", 2, by_name_only=True
    ),
]
