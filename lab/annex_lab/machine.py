"""What the figures were taken on: enough to judge them, nothing that names the machine."""

import os
import platform
import re
from pathlib import Path


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text().splitlines()[0].strip()
    except (OSError, IndexError):
        return "unknown"


# As the kernel names the models; cores of ARM's are built by many.
_MAKERS = {
    "Intel": re.compile(r"intel|xeon|pentium|celeron", re.IGNORECASE),
    "AMD": re.compile(r"amd\b|epyc|ryzen|opteron", re.IGNORECASE),
    "ARM": re.compile(r"\barm|neoverse|cortex|graviton|ampere|\bapple", re.IGNORECASE),
    "Hygon": re.compile(r"hygon", re.IGNORECASE),
    "Zhaoxin": re.compile(r"zhaoxin|centaur|\bvia\b", re.IGNORECASE),
}


def maker(cpu: str) -> str | None:
    """None where the name does not tell, such as a virtual machine's own."""
    return next((name for name, pattern in _MAKERS.items() if pattern.search(cpu)), None)


def in_words(described: dict) -> str:
    """One line, of what describe() says."""
    return (
        f"{described['cpu']}, {described['cpus']} CPUs, {described['memory_gib']} GiB, Linux {described['kernel']}, "
        f"{described['libc']}, transparent huge pages {described['transparent_hugepage']}"
    )


def describe() -> dict[str, str | int]:
    model = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    memory_kib = int(_first_line("/proc/meminfo").split()[1])
    return {
        "cpu": model,
        "cpus": os.cpu_count() or 0,
        "memory_gib": round(memory_kib / 1024 / 1024),
        "kernel": re.match(r"[\d.]*", platform.release())[0],
        "libc": os.confstr("CS_GNU_LIBC_VERSION") or "unknown",
        "transparent_hugepage": _first_line("/sys/kernel/mm/transparent_hugepage/enabled"),
        "overcommit": _first_line("/proc/sys/vm/overcommit_memory"),
    }
