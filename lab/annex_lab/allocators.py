"""The allocators by name: where the library is, which version, and whether it is there."""

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from annex_lab import paths

OURS = ("annex", "annex-solo", "annex-offload")
PEERS = (
    "glibc",
    "jemalloc",
    "mimalloc2",
    "mimalloc3",
    "mimalloc3-secure",
    "snmalloc",
    "snmalloc-checks",
    "rpmalloc",
    "tcmalloc",
)


def is_ours(name: str) -> bool:
    """Annex's flavours, and builds of them that a person has named annex-something."""
    return name.startswith("annex")


class Unavailable(Exception):
    """The allocator cannot be measured here; the message says what to do."""


@dataclass(frozen=True)
class Allocator:
    name: str
    library: Path | None  # None: glibc, nothing is preloaded
    version: str
    env: dict[str, str] = field(default_factory=dict)  # what a program needs for it to work as its makers intend

    @property
    def preload(self) -> str:
        return str(self.library) if self.library else ""


def _digest(library: Path) -> str:
    return hashlib.sha256(library.read_bytes()).hexdigest()[:12]


def _peer(name: str) -> Allocator:
    if name == "glibc":
        return Allocator(name, None, os.confstr("CS_GNU_LIBC_VERSION").split()[-1])
    manifest = paths.PEERS / "manifest.json"
    known = json.loads(manifest.read_text()) if manifest.exists() else {}
    library = paths.PEERS / f"{name}.so"
    if known.get(name, {}).get("status") != "ready" or not library.exists():
        raise Unavailable(f"{name} is not built: run peers/build {name}")
    return Allocator(name, library, known[name]["version"], known[name].get("env", {}))


def _ours(name: str) -> Allocator:
    library = paths.RELEASE / f"lib{name}.so"
    if not library.exists():
        raise Unavailable(f"{name} is not built: cmake --preset release && cmake --build --preset release")
    return Allocator(name, library, f"build {_digest(library)}")


def find(name: str) -> Allocator:
    """The allocator of that name, or a library of one's own: NAME=/path/to/lib.so."""
    if "=" in name:
        label, _, library = name.partition("=")
        if not Path(library).is_file():
            raise Unavailable(f"{label}: there is no library {library}")
        return Allocator(label, Path(library).resolve(), f"file {_digest(Path(library))}")
    if name in PEERS:
        return _peer(name)
    if name in OURS:
        return _ours(name)
    raise Unavailable(f"no allocator is called {name}: {', '.join(OURS + PEERS)}, or NAME=/path/to/lib.so")


def build_missing(names: list[str]) -> None:
    """Has peers/build make those peers that are not there yet; what cannot be made is left for find() to say."""
    missing = []
    for name in names:
        if name not in PEERS:
            continue
        try:
            find(name)
        except Unavailable:
            missing.append(name)
    if missing:
        subprocess.run([str(paths.ROOT / "peers" / "build"), *missing], stdout=sys.stderr, check=False)


def for_suite(suite: str) -> list[str]:
    """What is compared by default: every peer, with the Annex that suits the suite."""
    ours = {"single": ["annex-solo"], "multi": ["annex"], "all": ["annex-solo", "annex"]}[suite]
    return [*ours, *PEERS]
