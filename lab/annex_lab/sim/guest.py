"""What can be simulated: dynamically linked x86-64 programs. What can't is told apart here, before anything starts."""

import os
import shutil
import struct
from pathlib import Path

_X86_64 = 62
_INTERPRETER = 3
_MACHINES = {3: "32-bit x86", 40: "32-bit ARM", 183: "AArch64", 243: "RISC-V"}


class CannotSimulate(Exception):
    """The message says why, in one line."""


class NotFound(Exception):
    pass


def find(program: str) -> Path:
    path = shutil.which(program)
    if path is None:
        raise NotFound(f"{program}: no such program")
    return Path(path).absolute()  # not resolved: programs of several names go by the one they are called by


def _through_scripts(path: Path, arguments: list[str]) -> list[str]:
    """A script is its interpreter with the script as an argument."""
    for _ in range(4):
        head = path.read_bytes()[:256]
        if not head.startswith(b"#!"):
            return [str(path), *arguments]
        words = head.splitlines()[0][2:].decode(errors="replace").split(None, 1)
        if not words:
            break
        if Path(words[0]).name == "env" and len(words) > 1:
            words = [shutil.which(words[1]) or words[1]]
        arguments = [*words[1:], str(path), *arguments]
        path = find(words[0])
    raise CannotSimulate(f"{path}: a script without an interpreter that could be found")


def interpreter(program: Path) -> str | None:
    """The dynamic linker that an x86-64 program names; None for one that is linked statically."""
    data = program.read_bytes()
    offset, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    for at in range(offset, min(offset + size * count, len(data) - size + 1), size):
        if struct.unpack_from("<I", data, at)[0] == _INTERPRETER:
            begin, length = struct.unpack_from("<Q", data, at + 8)[0], struct.unpack_from("<Q", data, at + 32)[0]
            return os.fsdecode(data[begin : begin + length].rstrip(b"\0"))
    return None


def command(argv: list[str]) -> list[str]:
    """The program to be simulated, whole, with its arguments; raises CannotSimulate or NotFound."""
    argv = _through_scripts(find(argv[0]), argv[1:])
    path = Path(argv[0])
    data = path.read_bytes()
    if data[:4] != b"\x7fELF":
        raise CannotSimulate(f"{path}: not an ELF program")
    machine = struct.unpack_from("<H", data, 18)[0] if len(data) >= 64 else 0
    if machine != _X86_64 or data[4] != 2:
        raise CannotSimulate(f"{path}: a program for {_MACHINES.get(machine, f'machine {machine}')}, not for x86-64")
    if interpreter(path) is None:
        raise CannotSimulate(f"{path}: statically linked: no allocator can be preloaded into it")
    return argv
