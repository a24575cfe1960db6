"""Message passing on this machine: with batches over without, of all strategies in one run that takes turns."""

from collections.abc import Mapping, Sequence

from annex_lab.sim.figures import measured
from annex_lab.sim.figures.batchit.benchmarks import MESSAGES, asked
from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.figure import Choice
from annex_lab.sim.figures.host import Measurement
from annex_lab.sim.figures.values import Results

MESSAGE_PASSING = "msgpass"
SCALE = 0.1  # of annex-lab bench: a round takes a minute
PANELS = {"time": "score", "CPU time": "cpu_s", "peak memory": "peak_rss_kib"}


def measurement(choice: Choice, allocators: Sequence[str]) -> list[Measurement]:
    """Of these; the figures that ask for the same share it."""
    rows = asked(choice, MESSAGES)
    if not rows or not allocators:
        return []
    threads = tuple(MESSAGES[name].threads for name in rows)
    return [Measurement((MESSAGE_PASSING,), tuple(allocators), choice.rounds, SCALE * choice.scale_factor, threads)]


def cells(
    choice: Choice, results: Results, of: list[Measurement], series: Mapping[str, tuple[str, Sequence[str]]]
) -> list[Cell]:
    """series: by its name, whose number, and over whose; where there are several, over the least."""
    return [
        measured.ratio(
            results,
            one,
            Cell(f"{panel}, {measured.on_this_machine(results, one)}", row, name, None),
            program,
            over,
            under,
            metric,
        )
        for one in of
        for panel, metric in PANELS.items()
        for name, (over, under) in series.items()
        for row, program in zip(asked(choice, MESSAGES), one.programs, strict=True)
    ]
