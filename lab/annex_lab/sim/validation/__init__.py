"""Validates the simulator against references, and writes the errors down: annex-lab validate.

A section a file, each a table whose rows have a verdict. What is not met is shown as not met.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from annex_lab import allocators as known
from annex_lab.sim.validation import (
    absolute,
    against_host,
    apart,
    cachegrind,
    channels,
    contended,
    determinism,
    mallacc,
    real_cores,
    single,
    speed,
    two_threads,
)
from annex_lab.sim.validation.section import Section
from annex_lab.sim.validation.validator import Validator, console

Make = Callable[[Validator], Section | list[Section]]


def parts(rounds: int, billions: float) -> dict[str, Make]:
    """The page's parts, by name, in their order."""
    return {
        "counts": cachegrind.of_counts,
        "kernels": single.of_kernels,
        "contended": contended.of_contended,
        "host": lambda validator: against_host.against_host(validator, rounds),
        "mallacc": mallacc.of_mallacc,
        "lock-step": apart.against_lock_step,
        "quantum": apart.by_quantum,
        "channels": channels.of_channels,
        "determinism": determinism.of_determinism,
        "speed": lambda validator: speed.of_speed(validator, billions),
        "absolute": lambda validator: absolute.of_absolute(validator, rounds),
        "two-threads": lambda validator: two_threads.of_two_threads(validator, rounds),
        "real-cores": real_cores.of_real_cores,
    }


def make(wanted: list[Make]) -> list[Section]:
    known.build_missing([*against_host.ALLOCATORS, mallacc.ALLOCATOR])
    scratch = Path(tempfile.mkdtemp(prefix="annex-validate-"))
    sections: list[Section] = []
    try:
        validator = Validator(scratch)
        for one in wanted:
            found = one(validator)
            for section in found if isinstance(found, list) else [found]:
                sections.append(section)
                console.print(section.title, style="bold")
                for failed in section.failed:
                    console.print(f"  not met: {failed}", style="yellow", markup=False)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return sections


def count_failed(sections: list[Section]) -> int:
    return sum(len(section.failed) for section in sections)


def text(sections: list[Section]) -> str:
    return "\n".join(section.markdown() for section in sections)


def page(sections: list[Section], seconds: float) -> str:
    return (
        "# The simulator, validated\n\nMade by `make validate`"
        f" ({seconds / 60:.0f} minutes on {os.cpu_count()} CPUs). What is modelled: [simulator.md](simulator.md).\n\n"
        + text(sections)
    )


def replaced(page_text: str, sections: list[Section]) -> str:
    """The page with these sections in the place of those of the same titles; new ones go to its end."""
    head, *parts = page_text.split("\n## ")
    by_title = {part.splitlines()[0]: part for part in parts}
    for section in sections:
        by_title[section.title] = section.markdown().removeprefix("## ")
    return "\n\n## ".join(part.strip("\n") for part in (head, *by_title.values())) + "\n"


def replace(report: Path, names: list[str], rounds: int, billions: float) -> int:
    """Makes some parts and puts them into the page, the others staying as they are; how many bounds were not met."""
    known_parts = parts(rounds, billions)
    sections = make([known_parts[name] for name in names])
    report.write_text(replaced(report.read_text(), sections))
    return count_failed(sections)


def validate(report: Path, rounds: int, billions: float) -> int:
    """Writes the page; how many bounds were not met."""
    begin = time.monotonic()
    sections = make(list(parts(rounds, billions).values()))
    report.write_text(page(sections, time.monotonic() - begin))
    return count_failed(sections)


def only(names: list[str], rounds: int, billions: float) -> tuple[str, int]:
    """Some parts' text, and how many of their bounds were not met."""
    known_parts = parts(rounds, billions)
    sections = make([known_parts[name] for name in names])
    return text(sections), count_failed(sections)


def speed_against(plugin: Path, commit: str) -> tuple[str, int]:
    """The text of a comparison of speed with another build, and how many bounds were not met."""
    sections = make([lambda validator: speed.against(validator, plugin, commit)])
    return text(sections), count_failed(sections)
