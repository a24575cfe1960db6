"""Where to put the names of points so that they cover neither one another nor other points.

Each in turn takes the free place nearest to its point; where none is free, the one that covers the least.
"""

import math
from dataclasses import dataclass

from matplotlib.axes import Axes

WIDTH = 0.58  # of a character, by the height of the letters: an average
REACHES = (9, 16, 26, 38, 52)  # tried distances from the point
DIRECTIONS = [0, 180, 35, -35, 145, -145, 90, -90, 60, -60, 120, -120]


@dataclass(frozen=True)
class Box:
    left: float
    bottom: float
    right: float
    top: float

    def overlap(self, other: "Box") -> float:
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(width, 0) * max(height, 0)

    def outside(self, frame: "Box") -> float:
        area = (self.right - self.left) * (self.top - self.bottom)
        return area - self.overlap(frame)


def _place(at: tuple[float, float], width: float, height: float, reach: float, degrees: float) -> Box:
    """The box whose nearest side is `reach` away from the point, in that direction."""
    x = at[0] + reach * math.cos(math.radians(degrees))
    y = at[1] + reach * math.sin(math.radians(degrees))
    side = math.cos(math.radians(degrees))
    left = x - width / 2 if abs(side) < 0.3 else x if side > 0 else x - width
    return Box(left, y - height / 2, left + width, y + height / 2)


def places(
    points: dict[str, tuple[float, float]], lines: list[Box], frame: Box, size: float, radius: float = 6
) -> dict[str, Box]:
    """Name -> box of its label, in the units of the points; names that come first choose first."""
    dots = {name: Box(x - radius, y - radius, x + radius, y + radius) for name, (x, y) in points.items()}
    taken: dict[str, Box] = {}

    def cost(box: Box, reach: float) -> float:
        covered = sum(box.overlap(other) for other in [*dots.values(), *lines, *taken.values()])
        return 20 * covered + 50 * box.outside(frame) + reach

    for name, at in points.items():
        width = WIDTH * size * len(name)
        tried = [(reach, _place(at, width, size * 1.15, reach, turn)) for reach in REACHES for turn in DIRECTIONS]
        taken[name] = min(tried, key=lambda one: cost(one[1], one[0]))[1]
    return taken


def annotate(
    axes: Axes,
    points: dict[str, tuple[float, float]],
    lines: list[tuple[list[float], list[float]]],
    style: dict[str, dict],
    size: float = 10,
) -> None:
    """Writes each name beside its point, with a thin line to it where it had to go far.

    `lines`, which labels should not cover, and the points are in data coordinates; lines are level or upright.
    """
    to_pixels, to_axes = axes.transData.transform, axes.transAxes.inverted().transform
    pixels = {name: tuple(to_pixels(at)) for name, at in points.items()}
    area = axes.get_window_extent()
    frame = Box(area.x0, area.y0, area.x1, area.y1)
    drawn = [to_pixels(list(zip(*line, strict=True))) for line in lines]
    taken = [Box(*(ends.min(axis=0) - 1), *(ends.max(axis=0) + 1)) for ends in drawn]
    for name, box in places(pixels, taken, frame, size).items():
        middle = (box.bottom + box.top) / 2
        at = pixels[name]
        on_left = box.right <= at[0]
        edge = box.right if on_left else box.left if box.left >= at[0] else (box.left + box.right) / 2
        x, y = to_axes((edge, middle))
        align = "right" if on_left else "left" if box.left >= at[0] else "center"
        axes.text(x, y, name, transform=axes.transAxes, ha=align, va="center", fontsize=size, **style.get(name, {}))
        if math.dist((edge, middle), at) > REACHES[1] + 1:
            line = [to_axes(at), to_axes((edge, middle))]
            axes.plot(*zip(*line, strict=True), transform=axes.transAxes, color="#020202", lw=0.5, zorder=1)
