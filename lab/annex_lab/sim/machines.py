"""Simulated machines: presets by name, files of one's own, and `host`, as near to this machine as can be had."""

import re
from pathlib import Path

from annex_lab import paths
from annex_lab.sim import host

PRESETS = paths.ROOT / "sim" / "presets"
HOST = "host"
FAMILY = "speedmalloc"  # FAMILY-N: a machine for each number of cores that is a power of two, up to some


class UnknownMachine(Exception):
    pass


def presets() -> list[str]:
    return [*sorted((file.stem for file in PRESETS.glob("*.toml")), key=_natural), HOST]


def _natural(name: str) -> list:
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def sizes() -> list[int]:
    """Numbers of cores that the family has a machine for."""
    found = (re.fullmatch(rf"{FAMILY}-(\d+)", file.stem) for file in PRESETS.glob(f"{FAMILY}-*.toml"))
    return sorted(int(match[1]) for match in found if match)


def for_threads(threads: int) -> str:
    """The paper's machine with a core for each thread, or its largest."""
    return f"{FAMILY}-{next((size for size in sizes() if size >= threads), sizes()[-1])}"


def find(name: str, scratch: Path) -> Path:
    """The file of a preset, or a file by its path."""
    if name == HOST:
        file = scratch / "host.toml"
        file.write_text(host.machine())
        return file
    preset = PRESETS / f"{name}.toml"
    if preset.is_file():
        return preset
    if Path(name).is_file():
        return Path(name).resolve()  # the run may be in another folder
    raise UnknownMachine(f"no machine is called {name}, and there is no such file; presets: {', '.join(presets())}")
