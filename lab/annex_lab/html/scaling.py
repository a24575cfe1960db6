"""How a program's pace grows with its threads under each allocator, where it ran with three numbers of them or more.

The pace is the work a second, as a multiple of the yardstick's with the fewest threads; of each cell's rounds the
geometric mean, as everywhere (stats.py).
"""

import math
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from annex_lab import stats
from annex_lab.allocators import is_ours
from annex_lab.html import palette, plots, svg
from annex_lab.html.shape import Data, Row

LEAST_COUNTS = 3  # of threads, or there is no curve to see


def programs(data: Data) -> dict[str, list[Row]]:
    """Those with a curve, and their rows by number of threads."""
    found: dict[str, list[Row]] = {}
    for row in data.rows:
        # Where a run asks for several numbers, each is a program of its own: programs/model.py.
        found.setdefault(row.workload.removesuffix(f"/{row.threads}"), []).append(row)
    for rows in found.values():
        rows.sort(key=lambda row: row.threads or 0)
    return {name: rows for name, rows in found.items() if len(rows) >= LEAST_COUNTS and curves(data, rows)}


def curves(data: Data, rows: list[Row]) -> dict[str, tuple[list[int], list[float]]]:
    """Threads and paces of each allocator; empty where the yardstick has none to compare with."""
    seconds = {(row.threads, name): _seconds(data, row, name) for row in rows for name in data.allocators}
    base = seconds[rows[0].threads, data.yardstick]
    if base is None:
        return {}
    found = {}
    for name in data.allocators:
        points = [(row.threads, base / seconds[row.threads, name]) for row in rows if seconds[row.threads, name]]
        if points:
            found[name] = tuple(map(list, zip(*points, strict=True)))
    return found


def _seconds(data: Data, row: Row, allocator: str) -> float | None:
    """For the work: the geometric mean of the rounds; None where there is nothing above zero."""
    cell = data.cell(row, allocator)
    scores = cell["score"].to_numpy(float) if cell is not None else np.empty(0)
    scores = scores[scores > 0]
    return stats.geometric_mean(scores) if len(scores) else None


def picture(data: Data, workload: str, rows: list[Row], name: str) -> plots.Picture:
    with svg.settings():
        figure, axes = plots.new_axes(360, 260, 48, 38, 14)
        _draw(axes, data, rows, palette.STAND_INS)
        drawing = svg.inline(figure, name, f"{workload}: pace by threads")
    most = rows[-1].threads
    ends = {allocator: pace[-1] for allocator, (threads, pace) in curves(data, rows).items() if threads[-1] == most}
    best = max(ends, key=ends.__getitem__, default=None)
    caption = f"higher is better; highest with {most} threads: {best}, {ends[best]:.3g}" if best else "higher is better"
    return plots.Picture(workload, drawing, caption)


def write(data: Data, path: Path) -> bool:
    """All curves in one picture, of the kind that the file's name ends with. False where there are none."""
    found = programs(data)
    if not found:
        return False
    columns = min(len(found), 3)
    lines = math.ceil((len(found) + 1) / columns)  # one place is the legend's
    with svg.settings():
        figure = Figure(figsize=(4.2 * columns, 3.3 * lines), layout="constrained", facecolor="white")
        machine = data.document["machine"]
        figure.suptitle(f"{machine['cpu']}, {machine['cpus']} CPUs", fontsize=8, parse_math=False)
        places = figure.subplots(lines, columns, squeeze=False).flat
        for axes, (workload, rows) in zip(places, found.items(), strict=False):
            _draw(axes, data, rows, palette.ON_PAPER)
            axes.set_title(workload)
        handles, names = figure.axes[0].get_legend_handles_labels()
        for axes in figure.axes[len(found) :]:
            axes.set_axis_off()
        figure.axes[len(found)].legend(handles, names, loc="center", frameon=False)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    return True


def _draw(axes: Axes, data: Data, rows: list[Row], colours: dict[str, str]) -> None:
    counts = [row.threads for row in rows]
    found = curves(data, rows)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_locator(FixedLocator(counts))
    axes.xaxis.set_major_formatter(lambda value, _at: f"{value:g}")
    axes.yaxis.set_major_formatter(lambda value, _at: f"{value:g}")
    axes.set_xlabel("threads")
    axes.set_ylabel(f"pace, {data.yardstick} with {counts[0]} = 1")
    axes.plot(counts, [count / counts[0] for count in counts], color=colours["grid"], lw=1, ls=(0, (1, 2)))
    for name in [*(a for a in found if not is_ours(a)), *(a for a in found if is_ours(a))]:  # ours last, on top
        colour, dash = plots.line_of(data, name)
        width = 2.4 if is_ours(name) else 1.4
        axes.plot(*found[name], color=colours[colour], lw=width, ls=dash, marker="o", ms=1.6 * width, label=name)
