"""redis-server: benchmarked by redis-benchmark, filled with data that is read back, saved by forks, and restarted.

Debian's and Ubuntu's redis-server calls malloc, calloc, realloc, free and malloc_usable_size by these names and
gets them from libjemalloc.so.2, which it is linked with. A preloaded library comes first, so under Annex it serves
all five, while mallctl, which only jemalloc has, still answers for jemalloc. That is how the test knows who served:
jemalloc's own count of allocated bytes (allocator_allocated) covers the data set in the first pass and next to
nothing in the second.
"""

import contextlib
import hashlib
import time

from harness import Failure, main
from resp import Client, ReplyError

OPTIONS = [
    "--port",
    "0",
    "--save",
    "",
    "--daemonize",
    "no",
    "--hash-max-ziplist-entries",
    "16",
    "--hz",
    "50",
    "--lazyfree-lazy-user-del",
    "yes",
]


def fill(client):
    """All data types, small and large encodings, overwritten and shrunk as it goes."""
    for start in range(0, 20000, 1000):
        commands = []
        for n in range(start, start + 1000):
            commands += [
                ("SET", f"string:{n}", "v" * (n * 7919 % 700)),
                ("HSET", f"hash:{n % 300}", f"field{n}", "h" * (n % 90)),
                ("RPUSH", f"list:{n % 100}", "l" * (n * 31 % 120)),
                ("SADD", f"set:{n % 50}", f"member{n * 17 % 1500}"),
                ("ZADD", f"zset:{n % 40}", n * 104729 % 10007, f"m{n % 2500}"),
                ("APPEND", f"grown:{n % 20}", "x" * (n % 50)),
            ]
            if n % 3 == 0:
                commands += [
                    ("LPOP", f"list:{n % 100}"),
                    ("DEL", f"string:{n - 500}"),
                    ("HDEL", f"hash:{n % 300}", f"field{n - 300}"),
                ]
        client.pipeline(commands)
    client("SET", "large", "L" * 5_000_000)
    client("EVAL", "for i = 1, 5000 do redis.call('SET', 'lua:' .. i, string.rep('z', i % 100)) end", 0)


READERS = {
    "string": ("GET",),
    "hash": ("HGETALL",),
    "list": ("LRANGE", 0, -1),
    "set": ("SMEMBERS",),
    "zset": ("ZRANGE", 0, -1, "WITHSCORES"),
}


def digest(client):
    """A checksum over every key and its value, in an order of its own."""
    total = hashlib.sha256()
    keys = sorted(client("KEYS", "*"))
    for start in range(0, len(keys), 500):
        batch = keys[start : start + 500]
        kinds = client.pipeline([("TYPE", key) for key in batch])
        values = client.pipeline([(READERS[kind][0], key, *READERS[kind][1:]) for key, kind in zip(batch, kinds)])
        for key, kind, value in zip(batch, kinds, values):
            if kind == "hash":
                value = sorted(zip(value[::2], value[1::2]))
            total.update(repr((key, kind, sorted(value) if kind == "set" else value)).encode())
    return len(keys), total.hexdigest()


def info(client, section):
    lines = client("INFO", section).decode().splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def wait_for_child(client, what):
    deadline = time.monotonic() + 60
    while int((state := info(client, "persistence"))[f"{what}_in_progress"]):
        if time.monotonic() > deadline:
            raise Failure(f"{what} does not end")
        time.sleep(0.02)
    return state[{"rdb_bgsave": "rdb_last_bgsave_status", "aof_rewrite": "aof_last_bgrewrite_status"}[what]]


def check_who_serves(on, client):
    """The server asks jemalloc for its counters ten times a second, or when it comes to it."""
    deadline = time.monotonic() + 60
    while True:
        time.sleep(0.3)
        memory = info(client, "memory")
        used, jemalloc = int(memory["used_memory"]), int(memory["allocator_allocated"])
        if not memory["mem_allocator"].startswith("jemalloc"):
            print(f"this redis-server uses {memory['mem_allocator']}: jemalloc's counters are not checked")
            return
        if jemalloc > 0 and (jemalloc < used / 10) == bool(on.library):
            break
        if time.monotonic() > deadline:
            raise Failure(f"void: on {on.name}, redis uses {used} bytes, of which jemalloc serves {jemalloc}")
    print(f"{on.name}: {used} bytes used, of which jemalloc serves {jemalloc}")


def work(on):
    socket = on.dir / "redis.sock"
    command = ["redis-server", *OPTIONS, "--dir", on.dir, "--unixsocket", socket]
    results = {}

    def ready():
        with contextlib.suppress(OSError, ReplyError):
            client = Client(socket)
            answer = client("PING")
            client.close()
            return answer == "PONG"
        return False

    with on.server(command, ready):
        client = Client(socket)
        fill(client)
        check_who_serves(on, client)
        results["data"] = digest(client)
        client("BGSAVE")
        for n in range(300):  # pages change under the child that saves
            client("SET", f"during:{n % 10}", "d" * (n * 100))
        results["bgsave"] = wait_for_child(client, "rdb_bgsave")
        client("CONFIG", "SET", "appendonly", "yes")
        results["rewrite"] = wait_for_child(client, "aof_rewrite")
        results["data after forks"] = digest(client)
        client("CONFIG", "SET", "appendonly", "no")
        client("SAVE")
        client.close()
    with on.server(command, ready):
        client = Client(socket)
        results["data after a restart"] = digest(client)
        benchmark = [
            "redis-benchmark",
            "-s",
            socket,
            "-q",
            "-n",
            10000,
            "-c",
            20,
            "-P",
            8,
            "-d",
            200,
            "-r",
            5000,
            "--threads",
            2,
        ]
        lines = on.run([*benchmark, "-t", "set,get,incr,lpush,rpop,sadd,hset,spop,zadd,lrange_100,mset"]).out.decode()
        lines = [line for line in lines.replace("\r", "\n").splitlines() if "requests per second" in line]
        results["benchmarks"] = sorted(line.split(":")[0].strip() for line in lines)
        results["kinds benchmarked"] = len(client("KEYS", "*")) > 5000
        client("FLUSHALL", "ASYNC")  # freed by another thread
        fill(client)
        results["data once more"] = digest(client)
        client("FLUSHALL", "SYNC")
        client.close()
    return results


main(work, ["redis-server", "redis-benchmark"], processes=3)
