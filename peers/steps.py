"""What the scripts of the peers share: where things lie, running a step with its output in a log, small programs."""

import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
OUT = ROOT / "build" / "peers"


class Failed(Exception):
    """A peer could not be had; the message says why and where its log is."""


def run(command, cwd, log):
    """Runs one step with its output in the log; raises Failed with the log's last lines."""
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [str(part) for part in command]
    with log.open("a") as sink:
        sink.write(f"$ {' '.join(command)}\n")
        sink.flush()
        try:
            status = subprocess.run(command, cwd=cwd, stdout=sink, stderr=subprocess.STDOUT).returncode
        except FileNotFoundError:
            raise Failed(f"{command[0]} is not installed (peers/apt.txt)") from None
    if status != 0:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
        raise Failed(f"`{command[0]}` failed, see {log.relative_to(ROOT)}:\n{tail}")


def compiler_version():
    return subprocess.run(["c++", "--version"], capture_output=True, text=True).stdout.splitlines()[0]


def program(name):
    """The small program of that name beside this file, compiled when its source is newer."""
    binary, source = OUT / name, HERE / f"{name}.cpp"
    if not binary.exists() or binary.stat().st_mtime < source.stat().st_mtime:
        # -fno-builtin: a compiler that knows malloc may leave an allocation out.
        run(["c++", "-O1", "-std=c++17", "-fno-builtin", source, "-o", binary], ROOT, OUT / f"{name}.log")
    return binary
