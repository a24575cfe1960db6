"""A figure as a picture: bars by workload, or a line for each series, a panel below or beside the other."""

import math
from pathlib import Path

from annex_lab.sim.figures.cells import SHARE, Cell
from annex_lab.sim.figures.figure import Figure

COLUMNS = 4  # of small pictures of lines
NAMED, ROOM = 10, 36  # where rows' names have more letters than that, about so many are named at the axis of lines
PAPER = "#111111"
BOUND = "#8a8a8a"


def _errors(cell: Cell) -> tuple[float, float]:
    """Of means the interval over workloads, else the seeds."""
    low, high = (cell.low_95, cell.high_95) if cell.low_95 is not None else (cell.seeds_low, cell.seeds_high)
    if low is None or high is None:
        return 0.0, 0.0
    return max(0.0, cell.ours - low), max(0.0, high - cell.ours)


def _looks(series: list[str]) -> dict[str, tuple[str, str, str]]:
    """Colour, dash and hatch: the same allocator has the same colour, and offloaded a pattern."""
    from annex_lab.html import palette

    bases = list(dict.fromkeys(name.partition(" + ")[0] for name in series))
    looks = {}
    others = 0
    colours = {}
    for base in bases:
        if base.partition(" ")[0].startswith("annex"):
            colours[base] = palette.OURS[0]
        else:
            colours[base] = palette.SERIES[others % len(palette.SERIES)][0]
            others += 1
    for name in series:
        base, plus, _ = name.partition(" + ")
        # Where software stands beside it, offloaded is drawn through.
        alone = not plus or base not in series
        looks[name] = (colours[base], "solid" if alone else "dashed", "" if alone else "////")
    return looks


def _cell(cells: list[Cell], row: str, name: str) -> Cell | None:
    return next((cell for cell in cells if cell.row == row and cell.series == name and cell.ours is not None), None)


def _bars(axes, cells: list[Cell], looks: dict) -> None:
    rows = list(dict.fromkeys(cell.row for cell in cells))
    names = [name for name in looks if any(cell.series == name for cell in cells)]
    width = 0.8 / len(names)
    for number, name in enumerate(names):
        colour, _, hatch = looks[name]
        for at, row in enumerate(rows):
            x = at + (number - (len(names) - 1) / 2) * width
            if (cell := _cell(cells, row, name)) is None:
                continue
            low, high = _errors(cell)
            axes.bar(
                x, cell.ours, width * 0.92, color=colour, hatch=hatch, edgecolor="white", linewidth=0,
                yerr=[[low], [high]] if low or high else None, capsize=1.5,
                error_kw={"elinewidth": 0.8, "ecolor": "#444444"},
            )  # fmt: skip
            if cell.bound is not None:
                axes.plot([x], [cell.bound], marker="_", markersize=7, color=BOUND, linestyle="none")
            if cell.paper is not None:
                axes.plot([x], [cell.paper], marker="D", markersize=3.2, color=PAPER, linestyle="none")
    axes.set_xticks(range(len(rows)), rows, rotation=25, ha="right", fontsize=9)


def _lines(axes, cells: list[Cell], looks: dict) -> None:
    rows = list(dict.fromkeys(cell.row for cell in cells))
    for name, (colour, dash, _) in looks.items():
        found = [(at, cell) for at, row in enumerate(rows) if (cell := _cell(cells, row, name)) is not None]
        if not found:
            continue
        errors = [_errors(cell) for _, cell in found]
        axes.errorbar(
            [at for at, _ in found], [cell.ours for _, cell in found],
            [list(side) for side in zip(*errors, strict=True)] if any(map(any, errors)) else None,
            color=colour, linestyle=dash, marker="o", markersize=3.5, linewidth=1.5, capsize=2,
        )  # fmt: skip
        known = [(at, cell.paper) for at, cell in found if cell.paper is not None]
        if known:
            axes.plot(*zip(*known, strict=True), marker="D", markersize=4, color=colour, markeredgecolor=PAPER,
                      linestyle="none")  # fmt: skip
    apart = math.ceil(len(rows) / NAMED) if sum(map(len, rows)) > ROOM else 1
    axes.set_xticks(range(0, len(rows), apart), rows[::apart], fontsize=9)
    axes.set_xlim(-0.3, len(rows) - 0.7)


def draw(figure: Figure, cells: list[Cell], file: Path) -> None:
    from matplotlib import rc_context  # takes a second that only a picture is worth
    from matplotlib.figure import Figure as Picture
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    from annex_lab.html import svg

    cells = [cell for cell in cells if cell.ours is not None]
    file.unlink(missing_ok=True)
    if not cells:
        return
    panels = list(dict.fromkeys(cell.panel for cell in cells))
    kept = {name: svg.SETTINGS[name] for name in ("svg.fonttype", "svg.hashsalt", "font.family", "text.parse_math")}
    with rc_context({**kept, "hatch.linewidth": 0.8}):
        bars = figure.drawn == "bars"
        across = 1 if bars else min(COLUMNS, len(panels))
        down = math.ceil(len(panels) / across)
        size = (11.5, 3.1 * down + 0.6) if bars else (max(6.0, 3.4 * across), 2.9 * down + 0.8)
        picture = Picture(figsize=size, layout="constrained")
        all_axes = picture.subplots(down, across, squeeze=False).flat
        all_looks = _looks(list(dict.fromkeys(cell.series for cell in cells)))
        for axes, panel in zip(all_axes, panels, strict=False):
            here = [cell for cell in cells if cell.panel == panel]
            names = {cell.series for cell in here}
            looks = {name: look for name, look in all_looks.items() if name in names}
            (_bars if bars else _lines)(axes, here, looks)
            axes.set_title(panel, fontsize=10)
            axes.set_ylim(bottom=0)
            axes.grid(axis="y", color="#dddddd", linewidth=0.6)
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
            if any(cell.unit == SHARE for cell in here):
                axes.yaxis.set_major_formatter("{x:.0%}")
            else:
                axes.axhline(1, color="#999999", linewidth=0.7, zorder=0.5)
        for axes in list(all_axes)[len(panels) :]:
            axes.set_visible(False)
        if figure.unit:
            picture.supylabel(figure.unit, fontsize=10)
        if bars:
            handles = [Patch(facecolor=look[0], hatch=look[2], edgecolor="white") for look in all_looks.values()]
        else:
            handles = [Line2D([], [], color=look[0], linestyle=look[1], marker="o") for look in all_looks.values()]
        labels = list(all_looks)
        if bars and any(cell.bound is not None for cell in cells):
            handles.append(Line2D([], [], marker="_", color=BOUND, markersize=8, linestyle="none"))
            labels.append("calls for nothing")
        if any(cell.paper is not None for cell in cells):
            handles.append(Line2D([], [], marker="D", color=PAPER, markersize=4, linestyle="none"))
            labels.append("the paper's text")
        picture.legend(
            handles,
            labels,
            loc="outside lower center",
            ncols=min(int(size[0] // 2.2), len(labels)),
            frameon=False,
            fontsize=9,
        )
        picture.savefig(file, format="svg", metadata={"Date": None, "Creator": "annex-lab"})
