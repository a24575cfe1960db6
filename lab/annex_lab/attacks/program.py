"""The attack program (tests/attacks): what it holds, and one trial of it, a process under an allocator."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from annex_lab import sample
from annex_lab.allocators import Allocator, Unavailable

LIMIT_S = 30.0  # a trial takes milliseconds; an allocator that goes in circles is ended by the program itself, sooner
CONTROL = "control"  # the class of those that do nothing wrong
ODDS = ("reuse", "neighbour")  # classes that do nothing wrong either, and show what a mistake would hit


@dataclass(frozen=True)
class Attack:
    name: str
    kind: str  # its class
    gain: str  # what the attacker gets where it works
    what: str


@dataclass(frozen=True)
class Ending:
    """How a trial ended: its lines, its exit status (below 0: the signal), what stood on standard error."""

    lines: tuple[str, ...]
    status: int
    words: str = ""


def listed(program: Path) -> list[Attack]:
    done = subprocess.run([str(program), "--list"], capture_output=True, text=True, check=True)
    return [Attack(one["name"], one["class"], one["gain"], one["what"]) for one in json.loads(done.stdout)]


def environment(allocator: Allocator) -> dict[str, str]:
    preload = {"LD_PRELOAD": allocator.preload} if allocator.library else {}
    return {**sample.environment(allocator.env), **preload}


def output(program: Path, allocator: Allocator, *arguments: str) -> str:
    """Of a run that is no attack."""
    done = subprocess.run(
        [str(program), *arguments], env=environment(allocator), capture_output=True, text=True, timeout=LIMIT_S
    )
    if done.returncode != 0:
        raise Unavailable(f"{allocator.name}: the attack program ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def check_served(program: Path, allocator: Allocator) -> None:
    """A library that cannot be loaded is only warned of, and glibc would be attacked in its name."""
    if allocator.library is None:
        return
    serving = Path(output(program, allocator, "--library").strip()).name
    if serving not in {allocator.library.name, *(file.name for file in allocator.companions)}:
        raise Unavailable(f"{allocator.name} cannot be preloaded: malloc is {serving}'s")


def trial(program: Path, allocator: Allocator, attack: Attack) -> Ending:
    process = subprocess.Popen(
        [str(program), attack.name],
        env=environment(allocator),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=os.sep,
        text=True,
        errors="replace",
    )
    try:
        written, words = process.communicate(timeout=LIMIT_S)
    except BaseException as why:
        process.kill()
        written, words = process.communicate()
        if not isinstance(why, subprocess.TimeoutExpired):
            raise
    return Ending(tuple(written.splitlines()), process.returncode, words.strip())
