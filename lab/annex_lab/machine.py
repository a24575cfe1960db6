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
