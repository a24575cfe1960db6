"""How large the structures of the workloads are, beside what the papers say: workloads/sizes.csv.

`python -m annex_lab.programs.sizes` writes the table in workloads/README.md anew.
"""

import csv
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from annex_lab import paths
from annex_lab.report import table_head, table_row

WORKLOADS = paths.ROOT / "workloads"
README = WORKLOADS / "README.md"
BEGIN, END = "<!-- sizes.csv, as python -m annex_lab.programs.sizes writes it -->\n", "<!-- end -->\n"


@dataclass(frozen=True)
class Size:
    workload: str
    structure: str
    option: str  # of the workload, that sets it; "": none does, and the sizes are words
    paper: str  # that measures the program, and the section; "": none does
    program: str  # mimalloc-bench's, with its arguments or the file that says the size, where the paper says none
    theirs: str  # "": nobody says a size
    ours: str  # without any option
    why: str  # they differ, or what else has to be known

    @property
    def least(self) -> int:
        """That a figure's run may have: theirs, or, where nobody says a size, ours."""
        return int(self.theirs or self.ours)


def all_sizes() -> list[Size]:
    with open(WORKLOADS / "sizes.csv", newline="") as lines:
        return [Size(**row) for row in csv.DictReader(lines)]


@dataclass(frozen=True)
class Option:
    """As a workload's --help says it."""

    default: float
    is_scaled: bool


def options_of(workload: Path) -> dict[str, Option]:
    said = subprocess.run([workload, "--help"], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^  (--[\w-]+) \(default ([^,)]+)(, times --scale)?\): ", said, re.MULTILINE)
    return {name: Option(float(default), bool(scaled)) for name, default, scaled in found}


def given(argv: Iterable[str]) -> dict[str, float]:
    """The options in a workload's arguments: --name value or --name=value."""
    words = " ".join(argv).replace("=", " ").split()
    return {name: float(value) for name, value in zip(words[::2], words[1::2], strict=True)}


def too_small(argv: list[str]) -> list[str]:
    """Of a workload's command: the structures that are smaller than they may be in a figure."""
    workload, chosen = Path(argv[0]).name, given(argv[1:])
    return [
        f"{workload}: {chosen[size.option]:g} {size.structure}, not {size.least}"
        for size in all_sizes()
        if size.workload == workload and size.option in chosen and chosen[size.option] < size.least
    ]


def _shown(size: str) -> str:
    return f"{int(size):,}" if size.isdecimal() else size or "-"


def table() -> str:
    lines = table_head(["workload", "structure", "paper", "mimalloc-bench's", "theirs", "ours", ""])
    for size in all_sizes():
        named = f"{size.structure} (`{size.option}`)" if size.option else size.structure
        program = f"`{size.program}`" if size.program else ""
        lines.append(
            table_row(
                [
                    f"`{size.workload}`",
                    named,
                    size.paper or "-",
                    program,
                    _shown(size.theirs),
                    _shown(size.ours),
                    size.why,
                ]
            )
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    before, _, rest = README.read_text().partition(BEGIN)
    README.write_text(before + BEGIN + table() + END + rest.partition(END)[2])


if __name__ == "__main__":
    main()
