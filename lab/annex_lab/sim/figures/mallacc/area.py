"""The malloc cache's area, beside the paper's (its 6.4), and what it is of a core."""

import tempfile
from pathlib import Path

from annex_lab.sim import machines, run
from annex_lab.sim.energy import arrays, model, parameters, units
from annex_lab.sim.energy.make_tables import CHECKED_NM
from annex_lab.sim.figures.cells import COUNT, Cell
from annex_lab.sim.figures.figure import Choice, Figure
from annex_lab.sim.figures.mallacc import paper
from annex_lab.sim.figures.mallacc.common import MACHINE
from annex_lab.sim.figures.values import Results

ENTRIES = (16, 32, 64)  # with fewer CACTI finds no smaller arrays
PAPERS = 16
CHECKED = f"um2 at {CHECKED_NM} nm, {PAPERS} entries"
AREA = f"um2 at {arrays.NODE_NM} nm, by entries"
OF_A_CORE = f"millionths of a core with its caches, {PAPERS} entries"
SERIES = "malloc cache"


def _checked() -> list[Cell]:
    """CACTI 7's arrays where the paper has those of CACTI 6.5+."""
    by_kind = arrays.table(CHECKED_NM).set_index("kind").area_um2
    cam, sram = float(by_kind[arrays.CAM]), float(by_kind[arrays.RAM])
    rows = {
        "searched by content": (cam, paper.CAM),
        "table": (sram, paper.SRAM),
        "both": (cam + sram, paper.CAM + paper.SRAM),
    }
    return [
        Cell(CHECKED, row, SERIES, ours, paper=known, paper_from=paper.AREA_FROM, unit=COUNT)
        for row, (ours, known) in rows.items()
    ]


def _machine(entries: int) -> dict:
    unit = {"entries": entries, "size_class": "unit", "pop": "unit", "push": "unit"}
    return {"cores": 1, "mallacc": unit}


def _cell(panel: str, row: str, of: parameters.Estimate, **known) -> Cell:
    value, low, high = (round(number) for number in (of.value, of.low, of.high))
    return Cell(panel, row, SERIES, value, low_95=low, high_95=high, unit=COUNT, **known)


def _by_entries(drawn: parameters.Drawn) -> list[Cell]:
    return [
        _cell(AREA, str(entries), parameters.estimate(units.malloc_cache_area(_machine(entries), drawn) / units.UM2))
        for entries in ENTRIES
    ]


def _of_a_core(drawn: parameters.Drawn) -> list[Cell]:
    """Of the paper's core, and of the one that the energy model has."""
    cores = {f"of a Haswell's {paper.CORE_MM2} mm2": paper.CORE_MM2 + 0 * drawn["core.area"]}
    why = ""
    try:
        with tempfile.TemporaryDirectory(prefix="annex-area-") as scratch:
            core = model.core_area(run.parameters(machines.find(MACHINE, Path(scratch))), drawn)
        cores[f"of {MACHINE}'s, {core[0]:.1f} mm2"] = core
    except run.CannotRun as missing:
        why = str(missing)
    area = units.malloc_cache_area(_machine(PAPERS), drawn)
    found = []
    for row, core in cores.items():
        millionths = parameters.estimate(1e6 * area / core)
        known = {} if found else {"paper": paper.OF_A_CORE, "paper_from": paper.AREA_FROM}
        found.append(_cell(OF_A_CORE, row, millionths, **known))
    if why:
        found.append(Cell(OF_A_CORE, f"of {MACHINE}'s", SERIES, None, note=why, unit=COUNT))
    return found


def _cells(choice: Choice, results: Results) -> list[Cell]:
    drawn = parameters.draw()
    return [*_checked(), *_by_entries(drawn), *_of_a_core(drawn)]


AREA_FIGURE = Figure(
    "area",
    "The malloc cache's area",
    "What is searched by content and what is read then, by CACTI; with the computation of indices in the second and "
    f"third table, for which the paper has {paper.INDEX} um2 at {CHECKED_NM} nm, and less than {paper.WHOLE} in all. "
    "CACTI's narrowest entry that is searched has 64 bits, where Mallacc's 36 do. The interval in brackets is what the "
    "energy model's parameters leave open. The paper's core is a Haswell of 26.5 mm2.",
    cells=_cells,
    drawn="lines",
    unit="um2",
    pictured=lambda panel: panel == AREA,
    kind="",
)
