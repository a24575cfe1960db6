"""Pages of docs/ whose numbers come from figures' data: docs/NAME.md is what docs/NAME.md.j2 makes of docs/campaigns.

A template asks for a figure's CSV, `{% set rung = data("speedmalloc/17") %}`, and for its cells by panel, row, series,
`{{ rung("annex, over itself in software", mean, "speedmalloc") | ours }}`. Filters say how a cell is written:

    ours      0.59            its number, as in the figure's own table
    interval  0.59 [0.39 to 0.89]
    change    -41 %           of ratios: ours - 1; with its interval if `interval=true`
    share     22 %            of what is between 0 and 1; the same; saved: what is saved of it, as a change, -22 %
    span      0.57 to 0.70    of several cells
    paper     1.75            the paper's number
    bound     1.27            the same where calls cost nothing beside the signals

Words hang on numbers, too: `{{ "none is above one" | where(condition) }}` is the words, or an error where the data says
otherwise. What a template types out though it looks like a measurement (versions, sections, scales, numbers of a paper
that no figure has) it names in a comment, `{# typed: 0.7.6 6.1.3 #}`; any other decimal is an error.
"""

import difflib
import functools
import itertools
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import jinja2

from annex_lab import stats
from annex_lab.sim.figures.cells import ABOVE, Cell
from annex_lab.sim.figures.exgen.claims import ALONE
from annex_lab.sim.figures.figure import Choice
from annex_lab.sim.figures.values import AVERAGE, MEAN
from annex_lab.sim.figures.write import number, read_csv

ENDING = ".md.j2"
MEANS = (MEAN, AVERAGE)
MADE = "<!-- Made by `annex-lab figures pages --write` from {name} and campaigns/: change those. -->\n\n"
_TYPED = re.compile(r"\{#-?\s*typed:(.*?)-?#\}", re.DOTALL)
# What is no text: expressions, statements, comments, code, and the targets of links.
_NO_TEXT = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}|^ {4}.*$|`[^`]*`|\]\([^)]*\)", re.DOTALL | re.MULTILINE)
_DECIMAL = re.compile(r"(?<![\w.])\d+(?:\.\d+)+")


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
        self._made_by = re.search(r"^Made by: `(.*)`$", file.with_suffix(".md").read_text(), re.MULTILINE)[1]

    @property
    def seeds(self) -> int:
        """Of each run, by the command that made it."""
        said = re.search(r"--seeds (\S+)", self._made_by)
        return len(said[1].split(",")) if said else len(Choice({}, ()).seeds)

    def __call__(self, panel: str, row: object, series: str) -> Cell:
        cell = self._at.get((panel, str(row), series))
        if cell is None or cell.ours is None:
            raise Wrong(f"{self.name} has no number at {panel!r}, {row!r}, {series!r}")
        return cell

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

    def _means(self, series: tuple[str, ...]) -> list[Cell]:
        return [cell for cell in self.cells if cell.row == MEAN and (cell.series in series or not series)]

    def none_above(self, *series: str) -> bool:
        """Whether no mean is above one beyond its interval; `series`: of these, or of all."""
        return all(cell.low_95 <= 1 for cell in self._means(series))

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

    def above_one(self, panel: str, series: str) -> int:
        return sum(cell.ours > 1 for cell in self.workloads(panel, series))

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

    def falls(self, panel: str, series: Iterable[str]) -> bool:
        """Whether each row is below the one before it."""
        columns = [[cell.ours for cell in self.across(panel, name)] for name in series]
        return all(after < before for column in columns for before, after in itertools.pairwise(column))

    def least(self, panel: str, rows: Iterable[object]) -> float:
        return min(cell.ours for cell in self.cells if cell.panel == panel and cell.row in map(str, rows))


def ours(cell: Cell, digits: int | None = None) -> str:
    return number(cell.ours, cell.unit) if digits is None else f"{cell.ours:.{digits}f}"


def seeds(cell: Cell) -> str:
    """With the lowest and the highest seed, or round."""
    return f"{ours(cell)} ({number(cell.seeds_low, cell.unit)} to {number(cell.seeds_high, cell.unit)})"


def beside_paper(cell: Cell) -> str:
    return ours(cell) + (f" (the paper {number(cell.paper, cell.unit)})" if cell.paper is not None else "")


def _ends(cell: Cell) -> tuple[float, float]:
    if cell.low_95 is None or cell.high_95 is None:
        raise Wrong(f"no interval at {cell.panel!r}, {cell.row!r}, {cell.series!r}")
    return cell.low_95, cell.high_95


def interval(cell: Cell) -> str:
    low, high = _ends(cell)
    return f"{ours(cell)} [{number(low, cell.unit).removesuffix(' %')} to {number(high, cell.unit).removesuffix(' %')}]"


def _per_cent(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".replace(f"-{0:.{digits}f}", f"{0:.{digits}f}")


def change(cell: Cell, digits: int = 0, interval: bool = False) -> str:
    text = f"{_per_cent(100 * (cell.ours - 1), digits)} %"
    if not interval:
        return text
    low, high = (_per_cent(100 * (end - 1), digits) for end in _ends(cell))
    return f"{text} [{low} to {high}]"


def share(cell: Cell, digits: int = 0, interval: bool = False) -> str:
    """Of what is between 0 and 1."""
    text = f"{_per_cent(100 * cell.ours, digits)} %"
    if not interval:
        return text
    low, high = (_per_cent(100 * end, digits) for end in _ends(cell))
    return f"{text} [{low} to {high}]"


def saved(cell: Cell, digits: int = 0, interval: bool = False) -> str:
    """A share that is saved, as a change: -0.5 % [-1.4 to 0.4]."""
    text = f"{_per_cent(-100 * cell.ours, digits)} %"
    if not interval:
        return text
    low, high = (_per_cent(-100 * end, digits) for end in _ends(cell))
    return f"{text} [{high} to {low}]"


def _of(what: str) -> Callable[[Cell], str]:
    def written(cell: Cell) -> str:
        value = getattr(cell, what)
        if value is None:
            raise Wrong(f"no {what} at {cell.panel!r}, {cell.row!r}, {cell.series!r}")
        return number(value, cell.unit)

    return written


def span(values: Iterable[Cell | float], percent: bool = False) -> str:
    """From the least to the most."""
    numbers = [getattr(value, "ours", value) for value in values]
    least, most = min(numbers), max(numbers)
    return f"{100 * least:.0f} to {100 * most:.0f}" if percent else f"{least:.2f} to {most:.2f}"


def span_percent(values: Iterable[Cell], digits: int = 0) -> str:
    numbers = [100 * value.ours for value in values]
    return f"{_per_cent(min(numbers), digits)} to {_per_cent(max(numbers), digits)}"


def where(words: str, condition: bool) -> str:
    if not condition:
        raise Wrong(f'the data does not say: "{words}"')
    return words


def geomean(values: Iterable[float]) -> float:
    return stats.geometric_mean(list(values))


def environment(docs: Path) -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(docs),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # Markdown
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {
        **{
            "ours": ours,
            "interval": interval,
            "change": change,
            "share": share,
            "saved": saved,
            "span": span,
            "seeds": seeds,
            "beside_paper": beside_paper,
            "span_percent": span_percent,
            "where": where,
        },
        **{what: _of(what) for what in ("paper", "bound")},
    }

    @functools.cache
    def data(name: str) -> Data:
        return Data(name, docs / "campaigns" / f"{name}.csv")

    made.globals |= {
        "data": data,
        "mean": MEAN,
        "average": AVERAGE,
        "geomean": geomean,
        "max": max,
        "min": min,
        "alone": ALONE,
    }
    return made


def typed_numbers(template: str) -> list[str]:
    """Decimals that a template types out and does not own up to."""
    owned = {word for found in _TYPED.finditer(template) for word in found[1].split()}
    return [found for found in _DECIMAL.findall(_NO_TEXT.sub(" ", template)) if found not in owned]


def render(template: Path) -> str:
    """The page; raises Wrong."""
    text = template.read_text()
    if typed := typed_numbers(text):
        raise Wrong(f"{template.name} types {', '.join(dict.fromkeys(typed))}, which must come from data")
    try:
        page = environment(template.parent).from_string(text).render()
    except (Wrong, jinja2.TemplateError) as why:
        raise Wrong(f"{template.name}: {why}") from None
    heading, _, rest = page.lstrip("\n").partition("\n")
    return f"{heading}\n\n{MADE.format(name=template.name)}{rest.lstrip(chr(10))}"


def differences(docs: Path, write: bool = False) -> list[str]:
    """What is wrong with the pages, in lines; written, those that differ are made anew."""
    found = []
    for template in sorted(docs.glob(f"*{ENDING}")):
        page = template.with_name(template.name.removesuffix(ENDING) + ".md")
        try:
            text = render(template)
        except Wrong as why:
            found.append(str(why))
            continue
        now = page.read_text() if page.exists() else ""
        if now == text:
            continue
        if write:
            page.write_text(text)
        else:
            lines = difflib.unified_diff(now.splitlines(), text.splitlines(), "as it is", "as its data has it", n=0)
            found += [f"{page.name} differs from what {template.name} makes:", *list(lines)[2:]]
    return found
