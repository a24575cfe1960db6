"""SpeedMalloc 6.5: main cores, and how many support cores they need."""

from annex_lab.programs import spaced
from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.speedmalloc.common import SUPPORT, speedup
from annex_lab.sim.figures.values import AVERAGE, Column, Results, Value, cells, in_row, of, over

UNDER = "jemalloc"
MAINS = (16, 32, 64)
SUPPORTS = (1, 2, 4, 8)
WORKLOADS = ("mstress", spaced.name_of(100), spaced.name_of(1000))


def _settings(supports: int) -> tuple[str, ...]:
    return () if supports == 1 else (f"support_core.cores={supports}",)


def _runs(choice: Choice) -> list[Spec]:
    if not choice.among([UNDER]):
        return []
    made = []
    for mains in MAINS:
        runs = [choice.maker(UNDER, mains), *(choice.maker(UNDER, mains, SUPPORT, _settings(n)) for n in SUPPORTS)]
        made += [spec for run in runs for spec in each(run, choice.of(WORKLOADS), choice.seeds[:1])]
    return made


def _cells(choice: Choice, results: Results) -> list[Cell]:
    if not choice.among([UNDER]):
        return []
    found = []
    for workload in choice.of(WORKLOADS):
        for mains in MAINS:
            for supports in SUPPORTS:
                run = choice.maker(UNDER, mains, SUPPORT, _settings(supports))
                values: dict[str, Value] = {
                    "speedup over software": speedup(choice, UNDER, UNDER, mains, SUPPORT, _settings(supports)),
                    "a support core is busy, share of time": over(of(run, "support_busy"), of(run, "support_time")),
                    "malloc to pointer, cycles": of(run, "malloc_to_pointer"),
                    "of these: in the queue, cycles": of(run, "malloc_queued"),
                }
                for what, value in values.items():
                    column = Column(f"{mains} main cores", value, mean=AVERAGE)
                    where = in_row(str(supports), f"{workload}: {what}")
                    found += cells(results, column, [workload], choice.seeds[:1], where)[:1]
    return found


SCALING = Figure(
    "scaling",
    "More main cores, more support cores",
    f"{UNDER} with as many threads as main cores; rows are the number of support cores, each with a cluster of main "
    "cores and a heap of its own, the first seed.",
    _runs,
    _cells,
    drawn="lines",
    unit="see the panel",
    kind="",
)
