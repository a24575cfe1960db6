"""What a simulated program finds around it: the simulated machine's, or the same everywhere, and nothing of the host's.

Its system calls are answered by the simulator (sim/guest/system_calls.h). Here are the files that it finds in place of
the host's, where its stack begins, and the limits that QEMU and the kernel hand on to it.
"""

import ctypes
import os
import re
import resource
import struct
import subprocess
from pathlib import Path

from annex_lab import sample
from annex_lab.sim import guest

MEMORY_KIB = 64 << 20  # of every simulated machine: kMemory in sim/guest/system_calls.cpp
# QEMU lays the stack out by the first, and the C library the stacks of threads; both are what Debian starts with.
LIMITS = {resource.RLIMIT_STACK: 8 << 20, resource.RLIMIT_NOFILE: 1024}
_NO_RANDOM_ADDRESSES = 0x0040000

# The linker's cache, as glibc has written it since 2.2 (sysdeps/generic/dl-cache.h).
_MAGIC = b"glibc-ld.so.cache1.1"
_HEADER = struct.Struct("<20sIIB3xI12x")  # magic, entries, bytes of names, byte order, where extensions begin
_ENTRY = struct.Struct("<iIIIQ")  # kind, where name and path begin, two that are of no use any more
_LITTLE_ENDIAN = 2
_X86_64 = 0x0303  # the C library's sixth version, 64-bit


def _order(name: str) -> list[tuple[int, int]]:
    """The linker searches its cache by names in descending order, numbers by their value and after all else."""
    parts = re.findall(r"\d+|\D", name)
    return [(1, int(part)) if part.isdigit() else (0, ord(part)) for part in parts] + [(0, 0)]


def linker_cache(libraries: dict[str, str]) -> bytes:
    """/etc/ld.so.cache with those libraries: name -> path."""
    names = sorted(libraries, key=_order, reverse=True)
    strings, at = b"", _HEADER.size + len(names) * _ENTRY.size
    entries = []
    for name in names:
        places = []
        for text in (name, libraries[name]):
            places.append(at + len(strings))
            strings += os.fsencode(text) + b"\0"
        entries.append(_ENTRY.pack(_X86_64, *places, 0, 0))
    return _HEADER.pack(_MAGIC, len(names), len(strings), _LITTLE_ENDIAN, 0) + b"".join(entries) + strings


def libraries_of(program: str, qemu: list[str], environment: dict[str, str]) -> dict[str, str]:
    """What the program's own linker finds for it and for what is preloaded: name -> path."""
    linker = guest.interpreter(Path(program))
    if linker is None:
        return {}
    argv = [*qemu, "-U", "LD_PRELOAD"]
    for name in ("LD_PRELOAD", "LD_LIBRARY_PATH"):
        if name in environment:
            argv += ["-E", f"{name}={environment[name]}"]
    argv += [linker, "--list", program]
    listed = subprocess.run(argv, capture_output=True, text=True, errors="surrogateescape", env=sample.environment({}))
    return dict(re.findall(r"^\s*([^/\s]+) => (/.+) \(0x", listed.stdout, re.MULTILINE))


def root(folder: Path, machine: dict, tell_clock: bool, libraries: dict[str, str]) -> Path:
    """Files that the program finds in place of the host's: of its machine, and of what is installed only its own.

    How many libraries the linker's cache has decides how long it searches, and where the program's begin.
    """
    cores = machine["cores"]
    everything = f"0-{cores - 1}\n" if cores > 1 else "0\n"
    cpus, node = "sys/devices/system/cpu", "sys/devices/system/node"
    files = {
        "etc/ld.so.preload": "",
        "proc/meminfo": "".join(
            f"{name + ':':16}{MEMORY_KIB if 'Mem' in name else 0:>8} kB\n"
            for name in ("MemTotal", "MemFree", "MemAvailable", "Buffers", "Cached", "SwapTotal", "SwapFree")
        ),
        "proc/cpuinfo": "".join(
            f"processor\t: {core}\nmodel name\t: {machine['name']}\ncpu MHz\t\t: {machine['ghz'] * 1000:.3f}\n\n"
            for core in range(cores)
        ),
        "proc/self/cgroup": "0::/\n",
        "proc/sys/vm/overcommit_memory": "0\n",
        "proc/sys/vm/max_map_count": "65530\n",
        "sys/fs/cgroup/cpu.max": "max 100000\n",
        "sys/fs/cgroup/memory.max": "max\n",
        "sys/kernel/mm/transparent_hugepage/enabled": " ".join(
            f"[{policy}]" if policy == machine["pages"]["huge_pages"] else policy
            for policy in ("always", "madvise", "never")
        )
        + "\n",
        "sys/kernel/mm/transparent_hugepage/hpage_pmd_size": f"{2 << 20}\n",
        **{f"{cpus}/{name}": everything for name in ("online", "possible", "present")},
        **{f"{node}/{name}": "0\n" for name in ("online", "possible")},
        f"{node}/node0/cpulist": everything,
    }
    for core in range(cores):
        files[f"{cpus}/cpu{core}/topology/thread_siblings_list"] = f"{core}\n"
        files[f"{cpus}/cpu{core}/cache/index3/shared_cpu_list"] = everything
    if tell_clock:  # where there is none, TCMalloc measures it, for some milliseconds
        files[f"{cpus}/cpu0/tsc_freq_khz"] = f"{machine['ghz'] * 1e6:.0f}\n"
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (folder / "etc/ld.so.cache").write_bytes(linker_cache(libraries))
    return folder


def padding(environment: dict[str, str], argv: list[str], lower: int = 0) -> dict[str, str]:
    """What makes environment and command together as large as any other's: the program's stack starts below them, and
    begins `lower` bytes lower by a larger environment.

    Else the length of the preloaded library's name, or of the folder that the program is in, decides which of the
    program's variables share a line of the caches, which was 15 % of msgpass on 16 cores.
    """
    names, room = 32, 4096
    missing = [f"PADDING_{i:02}" for i in range(len(environment), names)] or ["PADDING"]
    size = sum(len(os.fsencode(name + value)) + len("=\0") for name, value in environment.items())
    size += sum(len(os.fsencode(argument)) + len("\0") for argument in [argv[0], *argv])  # the program's name, again
    size += sum(len(name) + len("=\0") for name in missing)
    return {name: "" for name in missing[1:]} | {missing[0]: "x" * (-size % room + lower)}


def before_start() -> None:
    """In the process that will be QEMU."""
    ctypes.CDLL(None).personality(_NO_RANDOM_ADDRESSES)
    for limit, soft in LIMITS.items():
        _, hard = resource.getrlimit(limit)
        resource.setrlimit(limit, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))
