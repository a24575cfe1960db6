"""Proof that a preloaded library serves a program's malloc: the dynamic linker says which symbol it bound to what."""

import re
from collections.abc import Iterable
from pathlib import Path

FAMILY = ("malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc", "memalign", "malloc_usable_size")
# An allocator may look these up in libc for itself: for blocks that libc gave before it was there (tbb's does).
FOR_OLD_BLOCKS = ("free", "realloc", "malloc_usable_size")
_BINDING = re.compile(r"binding file (\S+) \[\d+\] to (\S+) \[\d+\]: normal symbol `(\w+)'")


def debug_environment(folder: Path) -> dict[str, str]:
    """Makes the dynamic linker write down its bindings; not for timed runs."""
    return {"LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": str(folder / "bindings")}


def bindings(lines: list[str]) -> set[tuple[str, str, str]]:
    """(symbol, who refers to it, what it was bound to) for the malloc family.

    A library's references to itself and the linker's own early ones (it has a small malloc until libc is relocated) are
    left out.
    """
    found = set()
    for line in lines:
        match = _BINDING.search(line)
        if not match or match[3] not in FAMILY:
            continue
        referrer, target, symbol = match.groups()
        if referrer != target and "ld-linux" not in Path(referrer).name:
            found.add((symbol, referrer, target))
    return found


def stray(found: set[tuple[str, str, str]], libraries: Iterable[str | Path]) -> set[tuple[str, str]]:
    """(symbol, object) where a reference ends in an object other than the allocator's own.

    A program that takes the address of free has an entry of its own for it, to which other libraries' references are
    bound too; it only jumps on. So an object is no stray where its own reference to the symbol goes to the allocator.
    Nor is what the allocator itself would hand an old block of libc's to; but where it takes memory from libc's malloc,
    libc is what would be measured.
    """
    names = {Path(library).name for library in libraries}
    forwards = {(symbol, referrer) for symbol, referrer, target in found if Path(target).name in names}
    return {
        (symbol, target)
        for symbol, referrer, target in found
        if Path(target).name not in names
        and (symbol, target) not in forwards
        and not (Path(referrer).name in names and symbol in FOR_OLD_BLOCKS)
    }


def complaint(folder: Path, library: str, companions: Iterable[Path] = ()) -> str | None:
    """None where every reference of the run's programs went to the library or its companions, else what is wrong."""
    files = sorted(folder.glob("bindings.*"))
    if not files:
        return "the dynamic linker wrote nothing: a static program?"
    own = [library, *companions]
    served = False
    for file in files:
        found = bindings(file.read_text(errors="replace").splitlines())
        strays = sorted(stray(found, own))
        if strays:
            return ", ".join(f"{symbol} is served by {Path(target).name}" for symbol, target in strays)
        served = served or bool(found)
    return None if served else "no reference to malloc was bound"
