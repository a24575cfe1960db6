"""A real server under load is looked into: redis_test.py TOOL PROGRAM LIBRARY

Every look succeeds and makes sense, while the server answers as before. Skipped where redis is not installed.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from target import PATIENCE, inspect, inspect_json, wait_for

SECONDS = 5


def connect(path):
    try:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(PATIENCE)
        connection.connect(str(path))
        return connection
    except OSError:
        connection.close()
        return None


def load(connection, number):
    """A thousand values are set, half of which go again."""
    commands = []
    for i in range(1000):
        key = f"key:{number}:{i}"
        commands.append(f"SET {key} {'v' * (i * 7 % 3000 + 1)}\r\n")
        if i % 2:
            commands.append(f"DEL {key}\r\n")
    connection.sendall("".join(commands).encode())
    answers = b""
    while answers.count(b"\r\n") < len(commands):
        answers += connection.recv(1 << 16)
    assert b"-ERR" not in answers, answers[:200]


def main(tool, library):
    if shutil.which("redis-server") is None:
        print("SKIPPED: redis-server is not here")
        return
    with tempfile.TemporaryDirectory(prefix="annex-redis-") as folder:
        path = Path(folder) / "socket"
        server = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", folder],
            stdout=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "LD_PRELOAD": library},
        )
        try:
            connection = wait_for("the server", lambda: connect(path))
            peak = looks = rounds = 0
            end = time.monotonic() + SECONDS
            while time.monotonic() < end or looks < 10:
                top = subprocess.Popen(
                    [tool, "top", str(server.pid), "--once", "--json", "--by", "thread"],
                    stdout=subprocess.PIPE,
                    text=True,
                )
                load(connection, rounds)
                said, _ = top.communicate(timeout=PATIENCE)
                assert top.returncode == 0 and said.startswith('{"schema":"annex-top/1"'), said
                seen = inspect_json(tool, "stats", server.pid, "--json")
                assert 0 < seen["used"] <= seen["slabs"] + seen["used_spans"], seen
                assert seen["used"] <= seen["resident"] + (4 << 20), seen
                peak = max(peak, seen["used"])
                looks += 2
                rounds += 1
            # 500 values of 1,500 bytes in the mean are left of each round.
            assert seen["used"] > rounds * 500 * 1000, (seen["used"], rounds)
            trim = subprocess.Popen([tool, "trim", str(server.pid), "--timeout", str(PATIENCE)])
            while trim.poll() is None:
                load(connection, rounds)
            assert trim.returncode == 0
            connection.close()
            assert inspect(tool, "stats", server.pid).returncode == 0
        finally:
            server.terminate()
            server.wait()
    print(f"{looks} looks, {rounds} rounds of load, {peak >> 20} MiB in use")


main(sys.argv[1], sys.argv[3])
