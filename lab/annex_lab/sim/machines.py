"""Simulated machines: presets by name, files of one's own, and `host`, made from what can be read of this machine."""

import re
from pathlib import Path

from annex_lab import paths
from annex_lab.sim import kernel_costs

PRESETS = paths.ROOT / "sim" / "presets"
HOST = "host"
FAMILY = "speedmalloc"  # has a machine for every number of cores that is a power of two up to 16

_CPU = Path("/sys/devices/system/cpu/cpu0")


class UnknownMachine(Exception):
    pass


def presets() -> list[str]:
    return [*sorted((file.stem for file in PRESETS.glob("*.toml")), key=_natural), HOST]


def _natural(name: str) -> list:
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def for_threads(threads: int) -> str:
    """The paper's machine with a core for each thread, or its largest."""
    return f"{FAMILY}-{next((n for n in (1, 2, 4, 8) if n >= threads), 16)}"


def find(name: str, scratch: Path) -> Path:
    """The file of a preset, or a file by its path."""
    if name == HOST:
        file = scratch / "host.toml"
        file.write_text(host())
        return file
    preset = PRESETS / f"{name}.toml"
    if preset.is_file():
        return preset
    if Path(name).is_file():
        return Path(name)
    raise UnknownMachine(f"no machine is called {name}, and there is no such file; presets: {', '.join(presets())}")


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None


def _bytes(text: str) -> int:
    return int(text.rstrip("KMG")) << {"K": 10, "M": 20, "G": 30}.get(text[-1], 0)


def _power_of_two_sets(size: int, ways: int) -> int:
    """The largest size not above it that a cache of that many ways can have."""
    sets = size // (64 * ways)
    return 64 * ways * (1 << (sets.bit_length() - 1))


def host() -> str:
    """This machine as TOML: clock and caches as the kernel shows them, what the kernel takes as measured; the rest is a
    Skylake-like core's."""
    ghz = 2.5
    cpuinfo = _read(Path("/proc/cpuinfo")) or ""
    model = re.search(r"model name\s*: (.*)", cpuinfo)
    if mhz := re.search(r"cpu MHz\s*: ([\d.]+)", cpuinfo):
        ghz = round(float(mhz[1]) / 1000, 2)
    cores = 0
    while (_CPU.parent / f"cpu{cores}").exists():
        cores += 1
    cores = max(1, min(cores, 64))
    caches = {}
    for index in sorted((_CPU / "cache").glob("index*")):
        level, kind = _read(index / "level"), _read(index / "type")
        size, ways = _read(index / "size"), _read(index / "ways_of_associativity")
        if not (level and kind and size and ways):
            continue
        name = {("1", "Data"): "l1d", ("1", "Instruction"): "l1i", ("2", "Unified"): "l2", ("3", "Unified"): "llc"}.get(
            (level, kind)
        )
        if name:
            caches[name] = (_bytes(size), max(1, int(ways)))
    # The model's caches contain each other: of a last level smaller than the second ones together, so much as the model
    # needs is taken.
    l2 = caches.get("l2", (1 << 20, 16))[0]
    llc, ways = caches.get("llc", (cores << 21, 16))
    llc = _power_of_two_sets(llc, ways)
    while llc < cores * l2:
        llc *= 2
    caches["llc"] = (llc, ways)
    latency = {"l1d": 5, "l1i": 4, "l2": 9, "llc": 40}
    prefetcher = {"l1d": "stride", "l1i": "next-line", "l2": "stride", "llc": "none"}
    lines = [
        f"# As near to the machine that it was made on as can be read from it: {model[1] if model else 'unknown'}.",
        'name = "host"',
        f"cores = {cores}",
        f"ghz = {ghz}",
        "[core]",
        "width = 4",
        "rob = 224",
        "scheduler = 97",
        "load_queue = 72",
        "store_queue = 56",
        *kernel_costs.toml(),
        "[dram]",
        "channels = 4",
    ]
    for name, (size, ways) in caches.items():
        lines += [
            f"[{name}]",
            f"bytes = {_power_of_two_sets(size, ways)}",
            f"ways = {ways}",
            f"latency = {latency[name]}",
            f'prefetcher = "{prefetcher[name]}"',
        ]
    return "\n".join(lines) + "\n"
