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

`energy("mstress")` is what annex-lab energy wrote into campaigns/energy/mstress.json: `estimate` writes one of its
values with the interval, `energy_tables` all of it as the command shows it; `parameter("support.power")` is one of the
model's.
`{{ addresses(rung) }}` follows "three seeds": that each had addresses of its own, or nothing of tables of one layout.

Words hang on numbers, too: `{{ "none is above one" | where(condition) }}` is the words, or an error where the data says
otherwise. What a template types out though it looks like a measurement (versions, sections, scales, numbers of a paper
that no figure has) it names in a comment, `{# typed: 0.7.6 6.1.3 #}`; any other decimal is an error. So it is in a page
of GUARDED that needs no template, as it has no measurement: there the comment is HTML's, `<!-- typed: 5.1.1 -->`.
"""

import difflib
import functools
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import jinja2

from annex_lab import stats
from annex_lab.sim.energy import shown
from annex_lab.sim.energy.parameters import Estimate, Parameter, parameters
from annex_lab.sim.figures.campaign_data import Data, Wrong
from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.exgen.claims import ALONE
from annex_lab.sim.figures.values import AVERAGE, MEAN
from annex_lab.sim.figures.write import number

ENDING = ".md.j2"
MADE = "<!-- Made by `annex-lab figures pages --write` from {name} and campaigns/: change those. -->\n\n"
# Pages whose numbers are made of data, all of them: one that has no template may type no decimal either.
GUARDED = ("findings.md", "figures.md", "hardware-*.md", "simulator-table3.md")
_TYPED = re.compile(r"(?:\{#-?|<!--)\s*typed:(.*?)(?:-?#\}|-->)", re.DOTALL)
# What is no text: expressions, statements, comments, code, and the targets of links.
_NO_TEXT = re.compile(
    r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}|<!--.*?-->|^ {4}[^\n]*$|`[^`]*`|\]\([^)]*\)", re.DOTALL | re.MULTILINE
)
_DECIMAL = re.compile(r"(?<![\w.])\d+(?:\.\d+)+")


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


def _told(cell: Cell, of: Callable[[float], float], digits: int, interval: bool) -> str:
    """Per cent of what `of` makes of the number, and of its interval's ends."""
    text = f"{_per_cent(of(cell.ours), digits)} %"
    if not interval:
        return text
    low, high = sorted(map(of, _ends(cell)))
    return f"{text} [{_per_cent(low, digits)} to {_per_cent(high, digits)}]"


def change(cell: Cell, digits: int = 0, interval: bool = False) -> str:
    return _told(cell, lambda ratio: 100 * (ratio - 1), digits, interval)


def share(cell: Cell, digits: int = 0, interval: bool = False) -> str:
    """Of what is between 0 and 1."""
    return _told(cell, lambda part: 100 * part, digits, interval)


def saved(cell: Cell, digits: int = 0, interval: bool = False) -> str:
    """A share that is saved, as a change: -0.5 % [-1.4 to 0.4]."""
    return _told(cell, lambda part: -100 * part, digits, interval)


def _of(what: str) -> Callable[[Cell], str]:
    def written(cell: Cell) -> str:
        value = getattr(cell, what)
        if value is None:
            raise Wrong(f"no {what} at {cell.panel!r}, {cell.row!r}, {cell.series!r}")
        return number(value, cell.unit)

    return written


def span(values: Iterable[Cell | float]) -> str:
    """From the least to the most."""
    numbers = [getattr(value, "ours", value) for value in values]
    return f"{min(numbers):.2f} to {max(numbers):.2f}"


def span_percent(values: Iterable[Cell], digits: int = 0) -> str:
    numbers = [100 * value.ours for value in values]
    return f"{_per_cent(min(numbers), digits)} to {_per_cent(max(numbers), digits)}"


def where(words: str, condition: bool) -> str:
    if not condition:
        raise Wrong(f'the data does not say: "{words}"')
    return words


def estimate(of: dict, scale: float = 1, digits: int = 2) -> str:
    """A number of annex-lab energy's, with what the model's parameters leave open; its ends with so many digits."""
    return shown.with_interval(Estimate(**of), scale, digits)


def parameter(name: str) -> Parameter:
    if name not in parameters():
        raise Wrong(f"the energy model has no parameter called {name}")
    return parameters()[name]


def addresses(*tables: Data) -> str:
    """What is to be said of their seeds, after "three seeds"."""
    if not any(table.layouts for table in tables):
        return ""
    return (
        ", each with addresses of its own" if all(table.layouts for table in tables) else ", some with other addresses"
    )


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
            "estimate": estimate,
            "energy_tables": shown.as_text,
        },
        **{what: _of(what) for what in ("paper", "bound")},
    }

    @functools.cache
    def data(name: str) -> Data:
        return Data(name, docs / "campaigns" / f"{name}.csv")

    @functools.cache
    def energy(name: str) -> dict:
        file = docs / "campaigns" / "energy" / f"{name}.json"
        if not file.is_file():
            raise Wrong(f"there is no estimate of energy called {name}")
        return json.loads(file.read_text())

    made.globals |= {
        "data": data,
        "energy": energy,
        "parameter": parameter,
        "mean": MEAN,
        "average": AVERAGE,
        "geomean": geomean,
        "addresses": addresses,
        "max": max,
        "min": min,
        "alone": ALONE,
    }
    return made


def typed_numbers(template: str) -> list[str]:
    """Decimals that a template types out and does not own up to."""
    owned = {word for found in _TYPED.finditer(template) for word in found[1].split()}
    return [found for found in _DECIMAL.findall(_NO_TEXT.sub(" ", template)) if found not in owned]


def refuse_typed(file: Path) -> str:
    """Its text; raises Wrong."""
    text = file.read_text()
    if typed := typed_numbers(text):
        raise Wrong(f"{file.name} types {', '.join(dict.fromkeys(typed))}, which must come from data")
    return text


def render(template: Path) -> str:
    """The page; raises Wrong."""
    text = refuse_typed(template)
    try:
        page = environment(template.parent).from_string(text).render()
    except (Wrong, jinja2.TemplateError) as why:
        raise Wrong(f"{template.name}: {why}") from None
    heading, _, rest = page.lstrip("\n").partition("\n")
    return f"{heading}\n\n{MADE.format(name=template.name)}{rest.lstrip(chr(10))}"


def without_template(docs: Path) -> list[Path]:
    """Of GUARDED."""
    pages = sorted(file for pattern in GUARDED for file in docs.glob(pattern))
    return [file for file in pages if not file.with_suffix(ENDING).exists()]


def differences(docs: Path, write: bool = False) -> list[str]:
    """What is wrong with the pages, in lines; written, those that differ are made anew."""
    found = []
    for page in without_template(docs):
        try:
            refuse_typed(page)
        except Wrong as why:
            found.append(str(why))
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
