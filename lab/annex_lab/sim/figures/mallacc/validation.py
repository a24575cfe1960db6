"""Table 1: how far the simulator's cycles are from a machine's, for the paper's microbenchmarks.

The paper's machine is a Haswell, and its simulator has one; ours is this machine, and the preset that is made after it.
"""

import statistics
from dataclasses import replace

from annex_lab.sim import machines
from annex_lab.sim.figures import host, metrics
from annex_lab.sim.figures.cells import RATIO, SHARE, Cell
from annex_lab.sim.figures.figure import Choice, Figure
from annex_lab.sim.figures.host import Measurement
from annex_lab.sim.figures.mallacc import paper
from annex_lab.sim.figures.mallacc.common import MICRO, STRIDES
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.values import AVERAGE, Missing, Results

ALLOCATOR = "gperftools"  # the paper's TCMalloc, without markers
SIMULATED = "antagonist"  # which the paper leaves out, as it is of its simulator alone
# Workload -> the scale on both sides: long enough that starting up is some per cent at most.
SCALES = {name: 0.1 if name in STRIDES else 0.3 for name in MICRO if name != SIMULATED}
ERROR, QUOTIENT = "cycle error", "simulated cycles over this machine's"


def _scale(choice: Choice, workload: str) -> float:
    return SCALES[workload] * choice.scale_factor


def _run(choice: Choice, workload: str) -> Spec:
    return Spec(workload, ALLOCATOR, 1, choice.seeds[0], _scale(choice, workload), machines.HOST)


def _runs(choice: Choice) -> list[Spec]:
    return [_run(choice, workload) for workload in choice.of(SCALES)]


def _measurements(choice: Choice) -> list[Measurement]:
    by_scale: dict[float, list[str]] = {}
    for workload in choice.of(SCALES):
        by_scale.setdefault(_scale(choice, workload), []).append(workload)
    return [Measurement(tuple(names), (ALLOCATOR,), choice.rounds, scale) for scale, names in by_scale.items()]


def _quotients(choice: Choice, results: Results, measurement: Measurement, workload: str) -> list[float]:
    """Of the median of the rounds, and of each round."""
    seconds = results.get(measurement, host.SAMPLES).values(workload, ALLOCATOR, "cpu_s")
    if not seconds:
        raise Missing(f"{workload} has no sample under {ALLOCATOR}")
    simulated = results.get(_run(choice, workload), metrics.BUSY_SECONDS)
    return [simulated / taken for taken in (statistics.median(seconds), *seconds)]


def _of_workload(choice: Choice, results: Results, measurement: Measurement, workload: str) -> list[Cell]:
    known = {"paper": paper.CYCLE_ERROR[workload], "paper_from": "Table 1"}
    error = Cell(ERROR, workload, ALLOCATOR, None, unit=SHARE, **known)
    quotient = Cell(QUOTIENT, workload, ALLOCATOR, None, unit=RATIO)
    try:
        quotients = _quotients(choice, results, measurement, workload)
    except Missing as why:
        return [replace(cell, note=str(why)) for cell in (error, quotient)]
    errors = [abs(one - 1) for one in quotients]
    return [
        replace(cell, ours=of[0], seeds_low=min(of[1:]), seeds_high=max(of[1:]))
        for cell, of in ((error, errors), (quotient, quotients))
    ]


def _cells(choice: Choice, results: Results) -> list[Cell]:
    found = [
        cell
        for measurement in _measurements(choice)
        for workload in measurement.workloads
        for cell in _of_workload(choice, results, measurement, workload)
    ]
    errors = [cell for cell in found if cell.panel == ERROR]
    there = [cell.ours for cell in errors if cell.ours is not None]
    if errors:
        known = {"paper": paper.CYCLE_ERROR[AVERAGE], "paper_from": "Table 1"}
        note = f"of {len(there)} of {len(errors)}" if len(there) < len(errors) else ""
        errors.append(
            Cell(ERROR, AVERAGE, ALLOCATOR, statistics.fmean(there) if there else None, note=note, unit=SHARE, **known)
        )
    return [*errors, *(cell for cell in found if cell.panel == QUOTIENT)]


TABLE_1 = Figure(
    "table1",
    "The simulator against this machine",
    "The paper has a Haswell, and counts its cycles. Here it is the machine that the lab runs on, and the preset "
    "`host`, which is made after it: busy cycles of the simulation at that machine's clock, as measured, over its CPU "
    "time. A number is of the median over the rounds, in parentheses are the lowest and the highest round instead of "
    "seeds; page faults and the start are in it. gperftools' TCMalloc. antagonist is left out, as in the paper.",
    _runs,
    _cells,
    measurements=_measurements,
    unit="error of the cycles",
    pictured=lambda panel: panel == ERROR,
    kind="Table",
)
