"""What the tests of annex-inspect's look at processes have in common: programs to look into, and the tool."""

import json
import os
import subprocess
import time
from pathlib import Path

PATIENCE = 120  # seconds: generous, as nothing here is about time


class Program:
    """A process that does as it is told (known_blocks.c)."""

    def __init__(self, program, library=None, user=None, **environment):
        preload = {"LD_PRELOAD": str(library)} if library else {}
        self.process = subprocess.Popen(
            [str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            user=user,
            env={"PATH": os.environ["PATH"], **preload, **environment},
        )
        assert self.answer() == "ready"

    @property
    def pid(self):
        return self.process.pid

    def answer(self):
        return self.process.stdout.readline().strip()

    def do(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return self.answer()

    def stats(self):
        return json.loads(self.do("stats"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def inspect(tool, *arguments, **options):
    return subprocess.run(
        [str(tool), *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        **options,
    )


def inspect_json(tool, *arguments):
    result = inspect(tool, *arguments)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def wait_for(what, condition):
    """What the condition is, once it is true."""
    end = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.05)
    return value


def state_of(pid):
    """The process's state, as /proc has it: one letter."""
    return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
