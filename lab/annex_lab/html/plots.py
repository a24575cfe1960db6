"""The pictures: time against memory, the spread of each program's samples, how long single calls took."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from annex_lab.allocators import is_ours
from annex_lab.html import labels, palette, svg, text
from annex_lab.html.heat import METRICS
from annex_lab.html.shape import Data, Row

INK, MUTED, OURS, TINT = (palette.STAND_INS[name] for name in ("ink", "muted", "ours", "tint"))
LOG_FROM = 5.0  # samples this many times apart are drawn on a logarithmic axis
LEAST = 1e-12


@dataclass(frozen=True)
class Picture:
    title: str
    svg: Markup
    caption: str = ""


def new_axes(width: float, height: float, left: float, bottom: float, right: float = 10, top: float = 8):
    """Sizes in CSS pixels, margins around the axes too."""
    figure = Figure(figsize=(width / 72, height / 72), dpi=72)  # a point is a pixel
    frame = (left / width, bottom / height, (width - left - right) / width, (height - bottom - top) / height)
    axes = figure.add_axes(frame)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=3, width=0.6, labelsize=10)
    return figure, axes


def _ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers for a logarithmic axis, at most so many: evenly apart on a short one, else by decades."""
    if high / low < 4:
        steps = [base * 10.0**power for power in range(math.floor(math.log10(low)) - 3, 10) for base in (1, 2, 5)]
        step = next(step for step in steps if (high - low) / step <= most - 1)
        first = math.ceil(low / step)
        return [round(number * step, 15) for number in range(first, math.floor(high / step) + 1)]
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for one in [(1, 1.5, 2, 3, 4, 5, 6, 8), (1, 1.5, 2, 3, 5, 7), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,)]:
        found = [round(m * 10.0**d, 12 - d) for d in decades for m in one]
        found = [tick for tick in found if low <= tick <= high]
        if len(found) <= most:
            return found
    return found[:: math.ceil(len(found) / most)]


def _log_axis(axes: Axes, which: str, limits: tuple[float, float], most: int, show: Callable[[float], str]) -> None:
    axis = axes.xaxis if which == "x" else axes.yaxis
    getattr(axes, f"set_{which}scale")("log")
    getattr(axes, f"set_{which}lim")(limits)
    axis.set_major_locator(FixedLocator(_ticks(*limits, most)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _at: show(value)))


def _around(values: list[float], margin: float) -> tuple[float, float]:
    """Limits of a logarithmic axis with everything inside and some room."""
    low, high = math.log(max(min(values), LEAST)), math.log(max(*values, LEAST))
    room = max((high - low) * margin, 0.02)
    return math.exp(low - room), math.exp(high + room)


def time_against_memory(data: Data, group: str, metric: str, name: str) -> Picture | None:
    """Geometric means of a group, both relative to the yardstick's, which is at 1, 1."""
    points: dict[str, tuple[float, float]] = {}
    bars: dict[str, list[dict]] = {}
    for allocator in data.allocators:
        pair = [data.geomeans.get((group, allocator, data.yardstick, m)) for m in (metric, "peak_rss_kib")]
        if allocator == data.yardstick:
            points[allocator] = (1.0, 1.0)
        elif all(pair):
            points[allocator] = (pair[0]["ratio"], pair[1]["ratio"])
            bars[allocator] = pair
    if len(points) < 2:
        return None
    whole = len(data.document["groups"].get(group, []))
    partly = {allocator for allocator, pair in bars.items() if min(one["programs"] for one in pair) < whole}
    short = METRICS[metric].short
    with svg.settings():
        figure, axes = new_axes(520, 380, 56, 40, 14)
        for i, which in enumerate("xy"):
            ends = [pair[i][bound] for pair in bars.values() for bound in ("low", "high")]
            known = [end for end in ends if end is not None] + [at[i] for at in points.values()]
            _log_axis(axes, which, _around(known, 0.14), 10, lambda value: f"{value:g}")
        axes.set_xlabel(f"{short} / {data.yardstick}'s")
        axes.set_ylabel(f"peak memory / {data.yardstick}'s")
        axes.axvline(1, color=MUTED, lw=0.8)
        axes.axhline(1, color=MUTED, lw=0.8)
        axes.fill_between([axes.get_xlim()[0], 1], axes.get_ylim()[0], 1, color=TINT, lw=0, zorder=0)
        lines = [(axes.get_xlim(), (1, 1)), ((1, 1), axes.get_ylim())]
        for allocator, at in points.items():
            colour = _scatter_colour(data, allocator)
            for i, one in enumerate(bars.get(allocator, ())):
                if one["low"] is not None:
                    ends = ([one["low"], one["high"]], [at[1 - i]] * 2)
                    lines.append(ends if i == 0 else ends[::-1])
                    axes.plot(*lines[-1], color=colour, lw=1.2, alpha=0.7)
            marker, size = ("D", 8) if is_ours(allocator) else ("o", 6.5)
            face = "none" if allocator in partly else colour
            axes.plot(*at, marker, mec=colour, mfc=face, ms=size, mew=1.4)
        style = {a: {"color": OURS, "weight": "bold"} for a in points if is_ours(a)}
        labels.annotate(axes, dict(sorted(points.items(), key=lambda one: not is_ours(one[0]))), lines, style)
        title = f"{group}, {short} against peak memory"
        caption = f"lower left is better, below 1 is better than {data.yardstick}."
        if partly:
            caption += f" Hollow: only some of the {whole} programs, so not to be held against the others."
        return Picture(title, svg.inline(figure, name, title), caption)


def _scatter_colour(data: Data, allocator: str) -> str:
    return OURS if is_ours(allocator) else MUTED if allocator == data.yardstick else palette.STAND_INS["s0"]


def spread(data: Data, row: Row, name: str) -> Picture | None:
    """Every sample of a program, a line of dots for each allocator."""
    cells = [(a, data.cell(row, a)) for a in data.allocators if data.cell(row, a) is not None]
    if not cells:
        return None
    values = np.concatenate([cell["score"].to_numpy(float) for _, cell in cells])
    longest = max(len(a) for a, _ in cells)
    with svg.settings():
        margin = 16 + 5.6 * min(longest, 24)
        figure, axes = new_axes(360, 32 + 16 * len(cells), margin, 24, 16, 4)
        if values.min() > 0 and values.max() / values.min() > LOG_FROM:
            _log_axis(axes, "x", _around([values.min(), values.max()], 0.06), 4, lambda one: _axis_seconds(one, one))
        else:
            room = max((values.max() - values.min()) * 0.06, abs(values.max()) * 0.005, LEAST)
            axes.set_xlim(values.min() - room, values.max() + room)
            axes.locator_params(axis="x", nbins=4)
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _at: _axis_seconds(value, values.max())))
        axes.set_ylim(len(cells) - 0.4, -0.6)
        axes.set_yticks(range(len(cells)), [a if len(a) <= 24 else a[:23] + "…" for a, _ in cells])
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(False, axis="y")
        if (base := data.median(row, data.yardstick, "score")) is not None:
            axes.axvline(base, color=MUTED, lw=0.8, ls=(0, (3, 2)))
        for at, (allocator, cell) in enumerate(cells):
            colour = OURS if is_ours(allocator) else INK if allocator == data.yardstick else "#060000"
            scores, disturbed = cell["score"].to_numpy(float), cell["disturbed"].to_numpy(bool)
            axes.plot([scores.min(), scores.max()], [at, at], color=colour, lw=1, alpha=0.45)
            for kept, face in ((~disturbed, colour), (disturbed, "none")):
                if kept.any():
                    line = {"ls": "", "marker": "o", "ms": 4.5, "mew": 0.9, "alpha": 0.75, "clip_on": False}
                    axes.plot(scores[kept], np.full(kept.sum(), at), mec=colour, mfc=face, **line)
            axes.plot(np.median(scores), at, "|", color=colour, ms=11, mew=1.8)
            if is_ours(allocator):
                axes.get_yticklabels()[at].set(color=OURS, weight="bold")
        drawing = svg.inline(figure, name, f"{row.label}: every sample by allocator")
        medians = {allocator: cell["score"].median() for allocator, cell in cells}
        best = min(medians, key=medians.__getitem__)
        caption = f"left is better; lowest median: {best}, {text.seconds(medians[best])}" if len(cells) > 1 else ""
        return Picture(row.label, drawing, caption)


def _axis_seconds(value: float, largest: float) -> str:
    """In the unit that suits `largest`: the end of the axis, for all its ticks alike."""
    size, unit = next(
        ((s, u) for s, u in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")) if largest >= s * 0.9999), (1e-9, "ns")
    )
    return f"{value / size:.4g} {unit}"


def latency(data: Data, workload: str, call: str, entries: list[dict], name: str) -> Picture | None:
    """What share of the calls took longer than so many nanoseconds: the further left and down, the better."""
    curves = {one["allocator"]: _exceeded(one["histogram"]) for one in entries}
    curves = {allocator: curve for allocator, curve in curves.items() if len(curve[0])}
    if not curves:
        return None
    times = np.concatenate([x for x, _ in curves.values()])
    shares = np.concatenate([y for _, y in curves.values()])
    with svg.settings():
        figure, axes = new_axes(440, 300, 62, 38, 22)
        _log_axis(
            axes, "x", _around([times.min(), times.max()], 0.03), 7, lambda ns: _axis_seconds(ns * 1e-9, ns * 1e-9)
        )
        _log_axis(axes, "y", _around([shares.min(), 1.0], 0.03), 8, _share)
        axes.set_xlabel("longer than")
        axes.set_ylabel("share of the calls")
        for allocator in reversed(data.allocators):  # ours last, on top
            if allocator in curves:
                colour, dash = line_of(data, allocator)
                width = 2.4 if is_ours(allocator) else 1.4
                ls = {"solid": "-", "dashed": (0, (4, 2)), "dotted": (0, (1, 1.4))}[dash]
                axes.plot(*curves[allocator], color=palette.STAND_INS[colour], lw=width, ls=ls)
        drawing = svg.inline(figure, name, f"{workload}: how long {call} took")
        tails = {one["allocator"]: one["p999_ns"] for one in entries if one["allocator"] in curves}
        best = min(tails, key=tails.__getitem__)
        caption = "lower left is better"
        if len(tails) > 1:
            caption += f"; lowest p99.9: {best}, {text.nanoseconds(tails[best])}"
        return Picture(f"{workload}, {call}", drawing, caption)


def line_of(data: Data, allocator: str) -> tuple[str, str]:
    """Colour variable and dash of an allocator's line, the same in every picture."""
    if is_ours(allocator):
        return "ours", palette.DASHES[data.ours.index(allocator) % len(palette.DASHES)]
    others = [one for one in data.allocators if not is_ours(one) and one != data.yardstick]
    return ("ink", "solid") if allocator == data.yardstick else palette.line(others.index(allocator))


def _exceeded(histogram: list[list[float]]) -> tuple[np.ndarray, np.ndarray]:
    """Steps of (time, share of calls above it) from pairs (upper bound, calls), where both have a logarithm."""
    pairs = np.array([pair for pair in histogram if pair[1] > 0], dtype=float).reshape(-1, 2)
    total = pairs[:, 1].sum()
    if total <= 0:
        return np.array([]), np.array([])
    above = 1 - np.cumsum(pairs[:, 1]) / total
    before = np.concatenate([[1.0], above[:-1]])
    times = np.repeat(np.maximum(pairs[:, 0], 0.5), 2)
    shares = np.stack([before, above], axis=1).ravel()
    kept = shares > 0.5 / total
    return times[kept], shares[kept]


def _share(value: float) -> str:
    if value >= 0.001:
        return f"{value * 100:g} %"
    return f"1 in {text.count(1 / value)}"
