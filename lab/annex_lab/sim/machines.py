"""Simulated machines: presets by name, files of one's own, and `host`, as near to this machine as can be had."""

import re
import shutil
from collections import defaultdict
from pathlib import Path

from annex_lab import paths
from annex_lab.sim import host

PRESETS = paths.ROOT / "sim" / "presets"
HOST = "host"
HARDWARE = PRESETS / "hardware"  # units that a machine may have beside it
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
    """The file of a preset, or a file by its path, from this folder or from the repository's."""
    if name == HOST:
        file = scratch / "host.toml"
        file.write_text(host.machine())
        return file
    preset = PRESETS / f"{name}.toml"
    if preset.is_file():
        return preset
    for file in (Path(name), paths.ROOT / name):
        if file.is_file():
            return file.resolve()  # the run may be in another folder
    raise UnknownMachine(f"no machine is called {name}, and there is no such file; presets: {', '.join(presets())}")


def hardware() -> list[str]:
    return sorted(file.stem for file in HARDWARE.glob("*.toml"))


def changed(machine: Path, unit: str, settings: list[str], scratch: Path) -> Path:
    """The machine with a hardware unit, and with single parameters set: `GROUP.NAME=VALUE`, as in a machine's file."""
    if machine.suffix != ".toml":
        machine = Path(shutil.copy(machine, scratch / "base.toml"))
    bases = [str(machine.with_suffix(""))]
    if unit:
        if unit not in hardware():
            raise UnknownMachine(f"no hardware is called {unit}: {', '.join(hardware())}")
        bases.append(str(HARDWARE / unit))
    tables: dict[str, list[str]] = defaultdict(list)
    for setting in settings:
        path, equals, value = setting.partition("=")
        table, _, name = path.strip().rpartition(".")
        if not equals or not re.fullmatch(r"[\w.]+", path.strip()):
            raise UnknownMachine(f"--set {setting}: must be GROUP.NAME=VALUE, as support_core.queue=64")
        tables[table].append(f"{name} = {_as_toml(value.strip())}")
    lines = [f"base = [{', '.join(_quoted(base) for base in bases)}]", f"name = {_quoted(_name(machine, unit))}"]
    lines += tables.pop("", [])
    for table, parameters in tables.items():
        lines += [f"[{table}]", *parameters]
    file = scratch / "machine.toml"
    file.write_text("\n".join(lines) + "\n")
    return file


def _name(machine: Path, unit: str) -> str:
    return f"{machine.stem} + {unit}" if unit else f"{machine.stem}, changed"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _as_toml(value: str) -> str:
    """A number as it is, all else as a string."""
    return value if re.fullmatch(r"[+-]?(\d+(\.\d+)?([eE][+-]?\d+)?|0x[0-9a-fA-F]+)", value) else _quoted(value)
