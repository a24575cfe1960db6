"""A figure's CSV in docs/campaigns, as a page's template asks for it (told.py): cells, columns, and what words say.

What has no answer raises Wrong: a page is not to be made of it.
"""

import itertools
import math
import re
from collections.abc import Iterable
from pathlib import Path

from annex_lab import stats
from annex_lab.sim.figures.cells import ABOVE, Cell
from annex_lab.sim.figures.figure import Choice
from annex_lab.sim.figures.values import AVERAGE, MEAN
from annex_lab.sim.figures.write import over_layouts, read_csv

MEANS = (MEAN, AVERAGE)


class Wrong(Exception):
    """A page that cannot be made: the message says which words have no data behind them."""


class Data:
    """The cells of one CSV, and what can be asked of them."""

    def __init__(self, name: str, file: Path):
        if not file.is_file():
            raise Wrong(f"there is no data called {name}")
        self.name = name
        self.cells = read_csv(file)
        self._at = {(cell.panel, cell.row, cell.series): cell for cell in self.cells}
        self.made_by = re.search(r"^Made by: `(.*)`$", file.with_suffix(".md").read_text(), re.MULTILINE)[1]

        self.layouts = over_layouts(file.with_suffix(".md"))  # whether each seed has its own

    @property
    def seeds(self) -> int:
        """Of each run, by the command that made it."""
        said = re.search(r"--seeds (\S+)", self.made_by)
        return len(said[1].split(",")) if said else len(Choice({}, ()).seeds)

    def __call__(self, panel: str, row: object, series: str) -> Cell:
        cell = self._at.get((panel, str(row), series))
        if cell is None or cell.ours is None:
            raise Wrong(f"{self.name} has no number at {panel!r}, {row!r}, {series!r}")
        return cell

    def has(self, panel: str, row: object, series: str) -> bool:
        return (panel, str(row), series) in self._at

    def workloads(self, panel: str, series: str) -> list[Cell]:
        """A column without its mean."""
        found = [
            cell
            for cell in self.cells
            if (cell.panel, cell.series) == (panel, series) and not cell.row.startswith(MEANS)
        ]
        if not found or any(cell.ours is None for cell in found):
            raise Wrong(f"{self.name} has no whole column {panel!r}, {series!r}")
        return found

    def bounds(self, panel: str, series: str) -> list[float]:
        """By workload: the same number where calls cost nothing beside the signals."""
        return [cell.bound for cell in self.workloads(panel, series)]

    def bound_of(self, panel: str, series: str) -> float:
        return stats.geometric_mean(self.bounds(panel, series))

    def bounds_of(self, row: str, panels: str) -> list[float]:
        """Of a workload, in each panel whose name ends so."""
        here = [cell for cell in self.cells if cell.row == row and cell.panel.endswith(panels)]
        return [cell.bound for cell in here if cell.bound is not None]

    def above(self) -> list[str]:
        """Workloads with a number above its bound."""
        return list(dict.fromkeys(cell.row for cell in self.cells if cell.flag == ABOVE))

    def above_in(self) -> list[str]:
        """The panels with such a number."""
        return list(dict.fromkeys(cell.panel for cell in self.cells if cell.flag == ABOVE))

    def _means(self, series: tuple[str, ...]) -> list[Cell]:
        return [cell for cell in self.cells if cell.row == MEAN and (cell.series in series or not series)]

    def means_ending(self, panels: str, series: str) -> list[Cell]:
        """In each panel whose name ends so."""
        return [cell for cell in self._means((series,)) if cell.panel.endswith(panels)]

    def none_above(self, *series: str) -> bool:
        """Whether no mean is above one beyond its interval; `series`: of these, or of all."""
        return all(cell.low_95 <= 1 for cell in self._means(series))

    def none_below(self, *series: str) -> bool:
        return all(cell.high_95 >= 1 for cell in self._means(series))

    def all_below(self, *series: str) -> bool:
        return all(cell.high_95 < 1 for cell in self._means(series))

    def none_clear(self, panel: str) -> bool:
        """Whether each mean's interval holds one."""
        return all(cell.low_95 <= 1 <= cell.high_95 for cell in self._means(()) if cell.panel == panel)

    def holds_one_and_paper(self, panel: str, prefix: str, names: Iterable[str]) -> bool:
        means = [self(panel, MEAN, prefix + name) for name in names]
        return all(one.low_95 <= value <= one.high_95 for one in means for value in (1, one.paper))

    def seeds_apart(self) -> float:
        """How far the means' seeds are apart, at most, as a share."""
        return max((cell.seeds_high - cell.seeds_low) / cell.ours for cell in self._means(()))

    def denser_than_paper(self, panel: str, series: str) -> int:
        return sum(cell.ours > cell.paper for cell in self.workloads(panel, series))

    def paper_span(self, panel: str, series: str) -> str:
        papers = [100 * cell.paper for cell in self.workloads(panel, series)]
        return f"{min(papers):.1f} to {max(papers):.1f}"

    def lowest(self, panel: str, series: str, count: int) -> list[str]:
        return [cell.row for cell in sorted(self.workloads(panel, series), key=lambda cell: cell.ours)[:count]]

    def highest(self, panel: str, series: str, count: int) -> list[str]:
        return self.lowest(panel, series, len(self.workloads(panel, series)))[::-1][:count]

    def most(self, panel: str, series: str) -> float:
        return max(cell.ours for cell in self.workloads(panel, series))

    def row_most(self, panel: str, row: object) -> float:
        return max(cell.ours for cell in self.cells if (cell.panel, cell.row) == (panel, str(row)))

    def least_of(self, panel: str, row: str) -> float:
        return min(cell.ours for cell in self.cells if (cell.panel, cell.row) == (panel, row))

    def above_one(self, panel: str, series: str) -> int:
        return sum(cell.ours > 1 for cell in self.workloads(panel, series))

    def faster(self, panel: str, series: str, by: float = 0.0) -> list[str]:
        """The workloads whose ratio is above one by more than so much."""
        return [cell.row for cell in self.workloads(panel, series) if cell.ours > 1 + by]

    def slower(self, panel: str, series: str, by: float = 0.0) -> list[str]:
        return [cell.row for cell in self.workloads(panel, series) if cell.ours < 1 - by]

    def faster_in_paper(self, panel: str, series: str) -> bool:
        """Whether the paper has all above one."""
        return all(cell.paper > 1 for cell in self.workloads(panel, series))

    def _by_panel(self, row: str, series: str) -> list[Cell]:
        """A row where panels are workloads, and their mean is one, too."""
        return [cell for cell in self.cells if (cell.row, cell.series) == (row, series) and cell.panel not in MEANS]

    def farthest(self, row: str, series: str) -> Cell:
        """Of those the one whose ratio is the farthest from one."""
        return max(self._by_panel(row, series), key=lambda cell: abs(math.log(cell.ours)))

    def raised(self, row: str, series: str, by: float) -> int:
        """How many of those are above one by more than so much."""
        return sum(cell.ours > 1 + by for cell in self._by_panel(row, series))

    def largest_means(self, rows: Iterable[str]) -> dict[str, float]:
        """Of rows in the panel of means: by series the largest."""
        there = [cell for cell in self.cells if cell.panel == MEAN and cell.row in rows]
        return {name: max(cell.ours for cell in there if cell.series == name) for name in {c.series for c in there}}

    def moved(self, panel: str) -> float:
        """How far the ratio of a panel that is the farthest from one is from it."""
        return max(abs(cell.ours - 1) for cell in self.cells if cell.panel == panel)

    def rows(self, panel: str) -> list[str]:
        return list(dict.fromkeys(cell.row for cell in self.cells if cell.panel == panel))

    def between(self, panel: str, series: str, least: int, end: int) -> str:
        """Of a histogram, whose rows are where its bins begin: the share in those bins, in per cent."""
        return f"{100 * sum(cell.ours for cell in self.across(panel, series) if least <= int(cell.row) < end):.0f}"

    def knee(self, panel: str, series: str) -> str:
        """The row with the largest step down."""
        steps = [
            (after.ours - before.ours, after.row) for before, after in itertools.pairwise(self.across(panel, series))
        ]
        return min(steps)[1]

    def part(self, panel: str, row: object) -> str:
        """Of Mallacc's limit, what it gains with so many entries, in per cent."""
        return f"{100 * (1 - self(panel, row, 'Mallacc').ours) / (1 - self(panel, row, 'limit').ours):.0f}"

    def holds_paper(self, panel: str, series: Iterable[str]) -> bool:
        return all(mean.low_95 <= mean.paper <= mean.high_95 for mean in (self(panel, MEAN, name) for name in series))

    def apart(self, panel: str, other: str) -> float:
        """How far the means of two panels are, at most."""
        means = [cell for cell in self._means(()) if cell.panel == panel]
        return max(abs(cell.ours - self(other, MEAN, cell.series).ours) for cell in means)

    def mean_without(self, panel: str, series: str, left_out: Iterable[str], only: Iterable[str] = ()) -> float:
        """The geometric mean of a column without some of its workloads, or of some only."""
        kept = [cell for cell in self.workloads(panel, series) if cell.row not in left_out]
        return stats.geometric_mean([cell.ours for cell in kept if not only or cell.row in only])

    def across(self, panel: str, series: str) -> list[Cell]:
        """All rows of a series."""
        return [cell for cell in self.cells if (cell.panel, cell.series) == (panel, series)]

    def across_apart(self, panel: str, series: str) -> float:
        """How far the numbers of a series are apart."""
        numbers = [cell.ours for cell in self.across(panel, series)]
        return max(numbers) - min(numbers)

    def falls(self, panel: str, series: Iterable[str]) -> bool:
        """Whether each row is below the one before it."""
        columns = [[cell.ours for cell in self.across(panel, name)] for name in series]
        return all(after < before for column in columns for before, after in itertools.pairwise(column))

    def least(self, panel: str, rows: Iterable[object]) -> float:
        return min(cell.ours for cell in self.cells if cell.panel == panel and cell.row in map(str, rows))
