"""Whether an allocator has what the machine's hardware units need of it, told from its ELF file before anything runs.

Every unit finds calls by their symbols (sim/guest/functions.h). Mallacc does steps of calls, and finds them by markers
in the code (src/experiments/mallacc_markers.h). Without them a unit has nothing to do, and its statistics would be
zeros.
"""

import functools
import re
from collections.abc import Iterable
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

NEEDED = ("malloc", "free")
MARKED = ("gperftools-marked", "annex-marked", "annex-solo-marked")  # annex_lab.allocators
# A jump to the next instruction; a nop of 8 bytes, or 9 with a prefix, whose displacement is 0x6d6c6300 and the kind.
_MARKER = re.compile(rb"\xeb\x00[\x40-\x4f]?\x0f\x1f\x84.(.)\x63\x6c\x6d", re.DOTALL)
# Mallacc's steps: the kinds of markers that begin each, and of those that end it with a result.
_STEPS = {"size_class": (1, {2, 3, 15}), "pop": (5, {6}), "push": (9, {10}), "sampling": (12, {13})}


class Unsuited(Exception):
    """Says in one line which unit would do nothing under which allocator, and why."""


@functools.cache
def functions(library: Path) -> frozenset[str]:
    """The functions that an x86-64 ELF file defines; raises Unsuited for any other file."""
    try:
        with open(library, "rb") as stream:
            elf = ELFFile(stream)
            if elf.elfclass != 64 or elf["e_machine"] != "EM_X86_64":
                raise Unsuited(f"{library.name} is a library for {elf.get_machine_arch()}, not for x86-64")
            return frozenset(
                symbol.name
                for table in elf.iter_sections()
                if isinstance(table, SymbolTableSection)
                for symbol in table.iter_symbols()
                if symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["type"] in ("STT_FUNC", "STT_LOOS")
            )  # STT_LOOS: an indirect function, GNU's
    except (OSError, ELFError) as why:
        raise Unsuited(f"{library.name} is not an ELF library: {why}") from None


@functools.cache
def marked_steps(file: Path) -> frozenset[str]:
    """Of Mallacc's steps, those whose begin and end are marked in the file."""
    kinds = {found[1][0] for found in _MARKER.finditer(file.read_bytes())}
    return frozenset(step for step, (begin, ends) in _STEPS.items() if begin in kinds and kinds & ends)


def check_library(library: Path) -> None:
    """A preloaded file that does not have malloc and free would leave glibc's in place, under its name."""
    if missing := [name for name in NEEDED if name not in functions(library)]:
        raise Unsuited(f"{library.name} defines no {' and no '.join(missing)}: it is not an allocator")


def _asked_of(unit: dict) -> list[str]:
    """The steps that Mallacc does, or leaves out; software does the others."""
    doers = ("unit", "free") if unit["entries"] else ("free",)
    return [step for step in _STEPS if unit[step] in doers]


def check_markers(allocator: str, files: Iterable[Path], machine: dict) -> None:
    """`machine`: with all its parameters. `files`: what may have the allocator's code in it."""
    unit = machine.get("mallacc")  # older builds of the simulator have none
    if unit is None or not (unit["entries"] or _asked_of(unit)):
        return
    marked = frozenset().union(*map(marked_steps, files))
    if not marked:
        raise Unsuited(f"mallacc does nothing for {allocator}, which has no markers for it: {', '.join(MARKED)} have")
    asked = _asked_of(unit)
    if asked and not marked.intersection(asked):
        raise Unsuited(
            f"mallacc does nothing for {allocator}: it is to do {', '.join(asked)}, and the markers there are "
            f"for {', '.join(sorted(marked))}"
        )
