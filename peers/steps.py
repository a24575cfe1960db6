"""What the scripts of the peers share: where things lie, running a step with its log, changing a source, programs."""

import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
OUT = ROOT / "build" / "peers"


class Failed(Exception):
    """A peer could not be had; the message says why in one line, the details are for the person at the terminal."""

    def __init__(self, why, details=""):
        super().__init__(why)
        self.details = details


def run(command, cwd, log):
    """Runs one step with its output in the log; raises Failed with the step's last lines."""
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [str(part) for part in command]
    with log.open("a") as sink:
        sink.write(f"$ {' '.join(command)}\n")
        sink.flush()
        begin = sink.tell()
        try:
            status = subprocess.run(command, cwd=cwd, stdout=sink, stderr=subprocess.STDOUT).returncode
        except FileNotFoundError:
            raise Failed(f"{command[0]} is not installed (peers/apt.txt, tools/apt-sim.txt)") from None
    if status != 0:
        said = log.read_bytes()[begin:].decode(errors="replace").replace(f"{ROOT}/", "").splitlines()
        last = next((line.strip() for line in reversed(said) if line.strip()), f"status {status}")
        where = log.relative_to(ROOT)
        raise Failed(f"{Path(command[0]).name} failed: {last} (the whole of it: {where})", "\n".join(said[-15:]))


def compiler_version():
    return subprocess.run(["c++", "--version"], capture_output=True, text=True).stdout.splitlines()[0]


def replace_file(source, target):
    """Puts a copy of the file in its place in one step: a program may be running with the old one mapped."""
    fresh = target.with_name(target.name + ".new")
    shutil.copy(source.resolve(), fresh)
    fresh.replace(target)


def program(name):
    """The small program of that name beside this file, compiled when its source is newer."""
    binary, source = OUT / name, HERE / f"{name}.cpp"
    if not binary.exists() or binary.stat().st_mtime < source.stat().st_mtime:
        # -fno-builtin: a compiler that knows malloc may leave an allocation out.
        run(["c++", "-O1", "-std=c++17", "-fno-builtin", source, "-o", binary], ROOT, OUT / f"{name}.log")
    return binary


def change_once(source: Path, by_file: dict[str, list[tuple[str, str]]]) -> None:
    """Puts new text in place of old, which must be there once."""
    for name, changes in by_file.items():
        file = source / name
        text = file.read_text()
        for old, new in changes:
            if text.count(old) != 1:
                raise ValueError(f"{name}: {text.count(old)} times instead of once: {old!r}")
            text = text.replace(old, new)
        file.write_text(text)
