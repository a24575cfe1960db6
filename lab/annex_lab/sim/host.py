"""The machine `host`: as near to the one that it runs on as can be read and measured.

The core's sizes are those of its microarchitecture, by what its maker or others published; caches are what the kernel
shows; latencies and the clock are measured, with the kernels that simulated machines are validated with, and what the
operating system takes with kernels of its own (kernel_costs.py). What was measured is kept in build/sim/host.json, so
that the machine stays the same from run to run; without that file it is measured again.
"""

import json
import os
import re
import resource
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from annex_lab import native, paths
from annex_lab.sim import kernel_costs

KEPT = paths.BUILD / "sim" / "host.json"

_CPU = Path("/sys/devices/system/cpu/cpu0")
LINE = 64
_KIB, _MIB = 1 << 10, 1 << 20


@dataclass(frozen=True)
class Core:
    """A microarchitecture, in a machine file's words. All keep decoded instructions, so decode is as wide."""

    source: str
    parameters: dict[str, int]
    ports: dict[str, int]  # none: as the machine file's default
    tlbs: dict[str, tuple[int, int]] = field(default_factory=dict)  # entries and ways; none: the same


_ZEN_PORTS = {
    "alu": 0x3F, "shift": 0x07, "mul": 0x38, "div": 0x20, "branch": 0x07, "microcode": 0x03,
    "load": 0x3C0, "store": 0xC00, "vector": 0xF000, "fp_add": 0xC000, "fp_mul": 0x3000, "fp_div": 0x1000,
}  # fmt: skip
_INTEL_WIDE = {
    "decode": 6,
    "width": 6,
    "retire_width": 8,
    "rob": 512,
    "scheduler": 205,
    "load_queue": 192,
    "store_queue": 114,
}

ZEN_5 = Core(
    "Zen 5: AMD, Software Optimization Guide for the Zen5 Microarchitecture, 58455, 2.10 to 2.12",
    {"decode": 8, "width": 8, "retire_width": 8, "rob": 448, "scheduler": 144, "load_queue": 202, "store_queue": 104},
    _ZEN_PORTS,
)
ZEN_4 = Core(
    "Zen 4: AMD, Software Optimization Guide for the Zen4 Microarchitecture, 57647, 2.10 to 2.12",
    {"decode": 6, "width": 6, "retire_width": 8, "rob": 320, "scheduler": 96, "load_queue": 88, "store_queue": 64},
    {},
)
ZEN_3 = Core(
    "Zen 3: AMD, Software Optimization Guide for Family 19h, 56665, 2.10 to 2.12",
    {"decode": 6, "width": 6, "retire_width": 8, "rob": 256, "scheduler": 96, "load_queue": 72, "store_queue": 64},
    {},
    {"itlb": (64, 64), "dtlb": (64, 64), "stlb": (2048, 8)},  # as CPUID's 8000_0005 and 8000_0006 say there
)
SKYLAKE = Core(
    "Skylake: Intel, Optimization Reference Manual, 248966, 2.6",
    {"decode": 4, "width": 4, "retire_width": 4, "rob": 224, "scheduler": 97, "load_queue": 72, "store_queue": 56},
    {},
)
ICE_LAKE = Core(
    "Ice Lake: Intel, Optimization Reference Manual, 248966, 2.4",
    {"decode": 5, "width": 5, "retire_width": 8, "rob": 352, "scheduler": 160, "load_queue": 128, "store_queue": 72},
    {},
)
GOLDEN_COVE = Core("Golden Cove: Intel, Optimization Reference Manual, 248966, 2.3", _INTEL_WIDE, {})

# By maker, family, and models: the first that fits.
CORES = (
    ("AuthenticAMD", 26, range(0, 256), ZEN_5),
    ("AuthenticAMD", 25, (*range(0x10, 0x20), *range(0x60, 0x80), *range(0xA0, 0xB0)), ZEN_4),
    ("AuthenticAMD", 25, range(0, 256), ZEN_3),
    ("GenuineIntel", 6, (0x8F, 0xCF, 0xAD, 0xAE, 0x97, 0x9A), GOLDEN_COVE),
    ("GenuineIntel", 6, (0x6A, 0x6C, 0x7D, 0x7E), ICE_LAKE),
    ("GenuineIntel", 6, (0x55, 0x4E, 0x5E, 0x8E, 0x9E), SKYLAKE),
)


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None


def core(cpuinfo: str) -> Core | None:
    """Of /proc/cpuinfo's processor; None: not known."""

    def field(name: str) -> str:
        found = re.search(rf"^{name}\s*: (.*)$", cpuinfo, re.MULTILINE)
        return found[1] if found else ""

    vendor, family, model = field("vendor_id"), field("cpu family"), field("model")
    for whose, of_family, models, found in CORES:
        if vendor == whose and family == str(of_family) and model.isdecimal() and int(model) in models:
            return found
    return None


def _bytes(text: str) -> int:
    return int(text.rstrip("KMG")) << {"K": 10, "M": 20, "G": 30}.get(text[-1], 0)


def _cpus(text: str) -> set[int]:
    """Of a list such as 0-3,8."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def power_of_two_sets(size: int, ways: int) -> int:
    """The largest size not above it that a cache of that many ways can have."""
    sets = size // (LINE * ways)
    return LINE * ways * (1 << (sets.bit_length() - 1))


def caches(folder: Path = _CPU / "cache") -> dict[str, tuple[int, int]]:
    """Bytes and ways of each; of one that more CPUs share than this process may use, our share."""
    names = {("1", "Data"): "l1d", ("1", "Instruction"): "l1i", ("2", "Unified"): "l2", ("3", "Unified"): "llc"}
    ours = os.sched_getaffinity(0)
    found = {}
    for index in sorted(folder.glob("index*")):
        level, kind = _read(index / "level"), _read(index / "type")
        size, ways = _read(index / "size"), _read(index / "ways_of_associativity")
        name = names.get((level or "", kind or ""))
        if not (name and size and ways):
            continue
        whole, sharers = _bytes(size), _cpus(_read(index / "shared_cpu_list") or "0")
        if name == "llc" and not sharers <= ours:
            whole = whole * len(sharers & ours) // len(sharers)
        ways = max(1, int(ways))
        found[name] = power_of_two_sets(whole, ways), ways
    return found


def _seconds(argv: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _ns(kernel: str, rounds: int, size: int | None = None, operations: int = 100) -> float:
    """Of one operation, from the difference of two counts: CPU time of the fastest of a few runs of each. The two take
    turns, since a shared machine is slower for seconds at a time."""
    few, many = (
        [str(native.kernels()), kernel, str(count), *([str(size)] if size else [])] for count in (rounds, 2 * rounds)
    )
    times = [(_seconds(few), _seconds(many)) for _ in range(5)]
    return (min(time for _, time in times) - min(time for time, _ in times)) / rounds / operations * 1e9


POSSIBLE_GHZ = (0.4, 8.0)
MULTIPLY_CYCLES = 3  # of 64 bits: Intel since Sandy Bridge, AMD since Zen (Agner Fog's tables)


def measured_clock(cycle_ns: Callable[[], float], told: float) -> float:
    """GHz, from the time of a cycle; what the kernel says where a disturbed machine gives impossible ones."""
    least, most = POSSIBLE_GHZ
    for _ in range(3):
        ns = cycle_ns()
        if ns > 0 and least <= 1 / ns <= most:
            return 1 / ns
    return min(max(told, least), most)


def _told_clock() -> float:
    found = re.search(r"cpu MHz\s*: ([0-9.]+)", _read(Path("/proc/cpuinfo")) or "")
    return float(found[1]) / 1000 if found else 3.0


def ours_of(whole: int, least: int, most_ns: float, time_of: Callable[[int], float]) -> int:
    """How much of a last level is ours: the largest part, a power of two times `least`, whose loads take no longer.

    On a virtual machine others use it too, whom nothing here shows.
    """
    size = least
    while 2 * size <= whole and time_of(2 * size) <= most_ns:
        size *= 2
    return size


def measure(found: dict[str, tuple[int, int]]) -> dict[str, float]:
    """The clock in GHz, and ns of what takes time; of each cache, of a chain of loads in a part of it."""
    l2, llc = found["l2"][0], found["llc"][0]
    memory = _ns("loads", 10_000, min(4 * llc, max(2 * llc, 256 * _MIB)))
    branches = _ns("branches-alternating", 200_000)
    in_llc = _ns("loads", 100_000, 2 * l2)
    return {
        # Not by additions: there are cores that make several of a chain into one (Golden Cove).
        "ghz": measured_clock(lambda: _ns("dependent-multiplies", 700_000) / MULTIPLY_CYCLES, _told_clock()),
        "l1d": _ns("loads", 1_000_000, 16 * _KIB),
        "l2": _ns("loads", 300_000, l2 // 4),
        "llc": in_llc,
        "llc_bytes": ours_of(llc, 2 * l2, (in_llc + memory) / 2, lambda size: _ns("loads", 20_000, size)),
        "memory": memory,
        "forward": _ns("store-to-load", 300_000),
        "atomic": _ns("atomics", 300_000),
        "mispredict": 2 * (_ns("branches-random", 200_000) - branches),
        "taken": branches / 2,  # a loop's, and every other time one in it
    }


_TURNS = 50_000  # of each of two CPUs
_MOST_TURN_NS = 1000  # two hand-overs from core to core, each at most 200 ns even between sockets


def turn() -> dict[str, float]:
    """Ns from one CPU's write of a word to the other's in reply; nothing where there are no two, or others use them."""

    def seconds(turns: int) -> float:
        begin = time.perf_counter()
        subprocess.run([str(native.kernels()), "poll-loop", str(turns), "2"], check=True)
        return time.perf_counter() - begin

    if len(os.sched_getaffinity(0)) < 2 or seconds(_TURNS) > 2 * _TURNS * _MOST_TURN_NS / 1e9:
        return {}
    times = [(seconds(_TURNS), seconds(2 * _TURNS)) for _ in range(9)]
    ns = (min(many for _, many in times) - min(few for few, _ in times)) / _TURNS / 2 * 1e9
    return {"turn": ns} if 0 < ns <= _MOST_TURN_NS else {}


def _kept(model: str) -> dict[str, float]:
    try:
        kept = json.loads(KEPT.read_text())
        measured = kept["measured"] if kept["model"] == model else {}
        return measured if "taken" in measured else {}  # before it was asked for
    except (OSError, ValueError, KeyError):
        return {}


def _measured(model: str, found: dict[str, tuple[int, int]]) -> dict[str, float]:
    measured = _kept(model)
    if "turn" in measured:
        return measured
    measured = (measured or measure(found)) | turn()
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    KEPT.write_text(json.dumps({"model": model, "measured": measured}, indent=1) + "\n")
    return measured


# Of a DDR4 or DDR5 chip, the machine file's defaults: what a closed row takes, and 64 bytes over the bus.
_DRAM_NS = 3 * 14.16 + 3.3


def machine_text(
    model: str, who: Core | None, cores: int, found: dict, measured: dict[str, float], kernel: list[str]
) -> str:
    """As TOML; `kernel`: the lines of its tables [system] and [pages]."""
    ghz = round(measured["ghz"], 2)

    # What a disturbed machine takes longer for than any could is as long as a machine file may have it.
    def cycles(ns: float, most: int = 1000) -> int:
        return min(max(1, round(ns * ghz)), most)

    l1 = cycles(measured["l1d"])
    l2 = cycles(measured["l2"] - measured["l1d"])
    llc = cycles(measured["llc"] - measured["l2"])
    controller = min(max(0, round(measured["memory"] - measured["llc"] - _DRAM_NS)), 1000)
    who_or_default = who or SKYLAKE
    # The model's caches contain each other: of a last level smaller than the second ones together, so much as the model
    # needs is taken.
    whole, llc_ways = found["llc"]
    llc_bytes = power_of_two_sets(min(whole, int(measured.get("llc_bytes", whole))), llc_ways)
    while llc_bytes < cores * found["l2"][0]:
        llc_bytes *= 2
    latencies = {"l1d": l1, "l1i": 4, "l2": l2, "llc": llc}
    prefetchers = {"l1d": "stride", "l1i": "next-line", "l2": "stride", "llc": "none"}
    lines = [
        f"# {model}. {who_or_default.source}{'' if who else ' (which it may not be: it is not known here)'}.",
        f"# Measured, in ns: {', '.join(f'{name} {value:.4g}' for name, value in measured.items())}.",
        'name = "host"',
        f"cores = {cores}",
        f"ghz = {ghz}",
        "[core]",
        *(f"{name} = {value}" for name, value in who_or_default.parameters.items()),
        f"forward = {cycles(measured['forward'], most=101) - 1}",  # the store takes one itself
        f"taken = {cycles(measured['taken'], most=100)}",
        f"atomic = {cycles(measured['atomic'])}",
        # A kernel's branch waits for a load and three more before it is known to be wrong.
        f"mispredict = {max(5, cycles(measured['mispredict']) - l1 - 7)}",
        *(["[core.ports]"] if who_or_default.ports else []),
        *(f"{name} = {value:#x}" for name, value in who_or_default.ports.items()),
        *kernel,
        "[dram]",
        "channels = 4",
        f"controller_ns = {controller}",
    ]
    for name, (size, ways) in {**found, "llc": (llc_bytes, llc_ways)}.items():
        lines += [
            f"[{name}]",
            f"bytes = {size}",
            f"ways = {ways}",
            f"latency = {latencies[name]}",
            f'prefetcher = "{prefetchers[name]}"',
        ]
    for name, (entries, ways) in who_or_default.tlbs.items():
        lines += [f"[{name}]", f"entries = {entries}", f"ways = {ways}"]
    if "turn" in measured:
        lines += coherence(measured["turn"] * ghz, l1 + l2 + llc)
    return "\n".join(lines) + "\n"


def coherence(turn: float, look_up: int) -> list[str]:
    """Of a machine file, by the cycles of a turn in which a word goes from one core to another.

    The writer looks the line up in all caches and has the reader's copy taken away; the reader looks it up and has it
    brought. What is beside the look-ups is parted as the defaults are, 12 to 20.
    """
    beside = max(0, round(turn - 2 * look_up))
    invalidate = round(beside * 12 / 32)
    return ["[coherence]", f"transfer = {beside - invalidate}", f"invalidate = {invalidate}"]


def _this() -> tuple[str, Core | None, dict[str, tuple[int, int]], int]:
    """The processor's name, its core, its caches, and how many of its cores there are for us."""
    cpuinfo = _read(Path("/proc/cpuinfo")) or ""
    name = re.search(r"model name\s*: (.*)", cpuinfo)
    cores = max(1, min(len(os.sched_getaffinity(0)), 64))
    found = {"l1d": (32 * _KIB, 8), "l1i": (32 * _KIB, 8), "l2": (_MIB, 16), "llc": (cores << 21, 16), **caches()}
    return name[1] if name else "unknown", core(cpuinfo), found, cores


def known() -> bool:
    """Whether the machine `host` has this processor's core, and not another's in its place."""
    return _this()[1] is not None


def clock() -> float:
    """GHz, measured."""
    model, _, found, _ = _this()
    return _measured(model, found)["ghz"]


def tells_clock() -> bool:
    """Whether programs find a file here that says how fast the time stamp counter is."""
    return (_CPU / "tsc_freq_khz").exists()


def machine() -> str:
    """This machine as TOML."""
    model, who, found, cores = _this()
    return machine_text(model, who, cores, found, _measured(model, found), kernel_costs.toml())
