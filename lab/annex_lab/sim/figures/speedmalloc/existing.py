"""Beside the paper's Figures 15 and 16, hardware that exists: a larger L1, and locked instructions done far away."""

from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.figure import Choice, Figure
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.speedmalloc.common import cells_of_variants, in_software, runs_of_variants
from annex_lab.sim.figures.values import Results

CHANGES = {
    "L1D of 16 KiB": ("", ("l1d.bytes=16384",)),
    "L1D of 64 KiB": ("", ("l1d.bytes=65536",)),
    "far atomics": ("", ("coherence.atomics=far",)),
}


def _runs(choice: Choice) -> list[Spec]:
    return [spec for name in in_software(choice) for spec in runs_of_variants(choice, name, CHANGES.values())]


def _cells(choice: Choice, results: Results) -> list[Cell]:
    found = []
    for name in in_software(choice):
        found += cells_of_variants(choice, results, name, CHANGES, f"{name}: speedup over the standard core")
    return found


EXISTING = Figure(
    "existing",
    "A larger L1, and locked instructions at the last level",
    "Allocators in software with 16 threads. The standard core has an L1D of 32 KiB and does locked instructions "
    "itself; far ones are done at the last level, as Arm's LSE allows. Ways and latencies stay as they are.",
    _runs,
    _cells,
    unit="speedup over the standard core",
    kind="",
)
