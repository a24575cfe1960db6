"""Results of simulated runs, kept by what they depend on: the very same run is not simulated twice.

The key is a SHA-256 over the simulator, the machine with all its parameters, QEMU, the program with its arguments, its
environment, its libraries and the allocator's, the seed, the layout, the number of threads, lock-step; of files their
content. What is not in it: files that the program opens without being told to on its command line (a Python module, a
configuration).
Only results of complete runs are kept, each in a file of its own that says what the key was made of.
"""

import functools
import hashlib
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from annex_lab import paths, sample
from annex_lab.sim import layout as layouts
from annex_lab.sim import run

FOLDER = paths.BUILD / "sim" / "cache"
FORMAT = 4  # counts on where the same ingredients no longer mean the same run
MOST_FILES = 5000  # in folders that the program is told of
_LOADER = "/lib64/ld-linux-x86-64.so.2"


class CannotCache(Exception):
    """What keeps a run from having a key, in one line."""


def digest(file: Path) -> str:
    """Of its content, which is read again only where the file has changed since this process read it."""
    state = file.stat()
    return _digest(file, (state.st_mtime_ns, state.st_size, state.st_ino))


@functools.lru_cache(maxsize=4096)
def _digest(file: Path, _state: tuple[int, ...]) -> str:
    whole = hashlib.sha256()
    with open(file, "rb") as stream:
        while chunk := stream.read(1 << 20):
            whole.update(chunk)
    return whole.hexdigest()


def _content(file: Path) -> str:
    if file.is_symlink():
        return os.readlink(file)
    return digest(file) if file.is_file() else ""


def _tree(folder: Path) -> str:
    """Of a folder: every file's name and content, every link's target."""
    files = []
    for where, _, names in os.walk(folder):
        files += [Path(where, name) for name in names]
        if len(files) > MOST_FILES:
            raise CannotCache(f"{folder}: more than {MOST_FILES} files")
    whole = hashlib.sha256()
    for file in sorted(files):
        whole.update(f"{file.relative_to(folder)}\0{_content(file)}\0".encode(errors="surrogateescape"))
    return whole.hexdigest()


def _of_argument(argument: str, cwd: Path) -> str | None:
    """The digest of the file or folder that an argument names, also as the value of an option (--in=FILE, -IDIR)."""
    match = re.fullmatch(r"-[\w-]+?=?(/.+)|--?[\w-]+=(.+)|([^-].*)", argument, re.DOTALL)
    if match is None or "\0" in argument:
        return None
    path = cwd / next(filter(None, match.groups()))
    try:
        if path.is_file():
            return digest(path)
        return _tree(path) if path.is_dir() else None
    except OSError as why:
        if why.filename is None or not os.path.exists(why.filename):  # too long for a name, or the like
            return None
        raise CannotCache(f"{why.filename}: {why.strerror}") from None


def _libraries(file: str) -> dict[str, str]:
    """The libraries that the dynamic linker would load with a program or library."""
    return {name: digest(Path(name)) for name in _loaded_with(file, digest(Path(file)))}


@functools.lru_cache(maxsize=4096)
def _loaded_with(file: str, _content: str) -> tuple[str, ...]:
    listed = subprocess.run([_LOADER, "--list", file], capture_output=True, text=True, env=sample.environment({}))
    return tuple(sorted(set(re.findall(r"(?:=> |^\s*)(/.+) \(0x", listed.stdout, re.MULTILINE))))


def ingredients(
    guest: run.Guest,
    machine: Path,
    scratch: Path,
    threads: int,
    seed: int,
    lock_step: bool = False,
    layout: int | None = None,
) -> dict:
    """All that a run depends on, as JSON; raises CannotCache, or CannotRun as the run itself would."""
    cwd = Path(guest.cwd or Path.cwd())
    places = layouts.numbered(run.layout_of(seed, layout))

    def same(text: str) -> str:  # the scratch folder has another name in each run, of the same length
        return text.replace(str(scratch), "{scratch}")

    try:
        parameters = run.parameters(machine)
        return {
            "format": FORMAT,
            "simulator": digest(run.PLUGIN),
            "parked": digest(run.PARKED) if run.parked(parameters) else None,
            "machine": parameters,
            "qemu": [run.version_of(run.qemu()), run.CPU],
            "program": [digest(Path(guest.argv[0])), _libraries(guest.argv[0])],
            "arguments": [[same(part), _of_argument(part, cwd)] for part in guest.argv[1:]],
            "name": same(guest.argv[0]),
            "allocator": [guest.library, digest(Path(guest.library)), _libraries(guest.library)]
            if guest.library
            else None,
            "environment": {name: same(value) for name, value in sample.environment(guest.env).items()},
            "stdin": digest(guest.stdin) if guest.stdin else None,
            "cwd": same(str(cwd)),
            "threads": threads,
            "seed": seed,
            "layout": [*places.addresses, places.gap, places.lower],
            "lock_step": lock_step,
            **({"roi": True} if guest.roi else {}),
        }
    except OSError as why:
        raise CannotCache(f"{why.filename}: {why.strerror}") from None


def key(what: dict) -> str:
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()


def find(what: dict) -> run.Simulated | None:
    try:
        kept = json.loads((FOLDER / f"{key(what)}.json").read_text())
        return run.Simulated(kept["results"], kept["status"])
    except (OSError, ValueError, KeyError):
        return None


def keep(what: dict, done: run.Simulated) -> Path:
    """Readers see the whole file or none, also where two runs are kept at the same time."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    file = FOLDER / f"{key(what)}.json"
    beside = file.with_suffix(f".{os.getpid()}")
    beside.write_text(json.dumps({"ingredients": what, "status": done.status, "results": done.results}) + "\n")
    beside.replace(file)
    return file


def simulated(
    guest: run.Guest,
    machine: Path,
    scratch: Path,
    threads: int,
    seed: int,
    simulate: Callable[[], run.Simulated],
    say: Callable[[str], None],
    lock_step: bool = False,
    layout: int | None = None,
) -> run.Simulated:
    """The results of the very same run where there are some, else those of simulate(), kept if they are complete."""
    try:
        what = ingredients(guest, machine, scratch, threads, seed, lock_step, layout)
    except CannotCache as why:
        say(f"cannot be kept: {why}")
        return simulate()
    if found := find(what):
        say(f"of an earlier run: {key(what)[:16]}")
        return found
    done = simulate()
    if done.results and done.results["complete"]:
        try:
            after = ingredients(guest, machine, scratch, threads, seed, lock_step, layout)
            unchanged = {**after, "arguments": what["arguments"]} == what  # the program may write its own files
        except (CannotCache, run.CannotRun):
            unchanged = False
        if unchanged:
            keep(what, done)
        else:
            say("not kept: what the run depends on changed meanwhile")
    return done
