"""Proof that a preloaded library serves a program's malloc: the dynamic linker says which symbol it bound to what."""

import re
from pathlib import Path

FAMILY = ("malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc", "memalign", "malloc_usable_size")
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


def stray(found: set[tuple[str, str, str]], library: str) -> set[tuple[str, str]]:
    """(symbol, object) where a reference ends in an object other than the library.

    A program that takes the address of free has an entry of its own for it, to which other libraries' references are
    bound too; it only jumps on. So an object is no stray where its own reference to the symbol goes to the library.
    """
    name = Path(library).name
    forwards = {(symbol, referrer) for symbol, referrer, target in found if Path(target).name == name}
    return {
        (symbol, target)
        for symbol, _referrer, target in found
        if Path(target).name != name and (symbol, target) not in forwards
    }


def complaint(folder: Path, library: str) -> str | None:
    """None where every reference of the run's programs went to the library, else what is wrong."""
    files = sorted(folder.glob("bindings.*"))
    if not files:
        return "the dynamic linker wrote nothing: a static program?"
    served = False
    for file in files:
        found = bindings(file.read_text(errors="replace").splitlines())
        strays = sorted(stray(found, library))
        if strays:
            return ", ".join(f"{symbol} is served by {Path(target).name}" for symbol, target in strays)
        served = served or bool(found)
    return None if served else "no reference to malloc was bound"
