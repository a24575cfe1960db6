"""A figure as files: NAME.csv with every cell, NAME.md for people, NAME.svg; and figures.md, the index of all."""

import csv
from pathlib import Path

from annex_lab.report import table_head, table_row
from annex_lab.sim.figures import draw
from annex_lab.sim.figures.cells import ABOVE, BEHIND, COUNT, RATIO, SHARE, Cell
from annex_lab.sim.figures.figure import Figure, Paper
from annex_lab.sim.figures.values import LEVEL

COLUMNS = (
    "figure", "panel", "row", "series", "ours", "seeds_low", "seeds_high", "low_95", "high_95",
    "paper", "paper_from", "deviation", "calls_for_nothing", "flag", "note", "unit",
)  # fmt: skip
MARKS = {ABOVE: "!!", BEHIND: "(s)"}


def _exact(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def as_csv(figure: Figure, cells: list[Cell], file: Path) -> None:
    with open(file, "w", newline="") as stream:
        rows = csv.writer(stream, lineterminator="\n")
        rows.writerow(COLUMNS)
        for cell in cells:
            numbers = (cell.ours, cell.seeds_low, cell.seeds_high, cell.low_95, cell.high_95, cell.paper)
            place = (figure.name, cell.panel, cell.row, cell.series)
            after = (cell.paper_from, _exact(cell.deviation), _exact(cell.bound), cell.flag, cell.note)
            after += (cell.unit,)
            rows.writerow([*place, *map(_exact, numbers), *after])


def number(value: float, unit: str) -> str:
    return {SHARE: f"{100 * value:.1f} %", COUNT: f"{value:g}"}.get(unit, f"{value:.2f}")


def read_csv(file: Path) -> list[Cell]:
    """What as_csv() wrote."""

    def exact(text: str) -> float | None:
        return float(text) if text else None

    with open(file, newline="") as stream:
        return [
            Cell(
                row["panel"], row["row"], row["series"], exact(row["ours"]), exact(row["seeds_low"]),
                exact(row["seeds_high"]), exact(row["low_95"]), exact(row["high_95"]), exact(row["paper"]),
                row["paper_from"], exact(row["calls_for_nothing"]), row["flag"], row["note"],
                row.get("unit", RATIO),
            )
            for row in csv.DictReader(stream)
        ]  # fmt: skip


def shown(cell: Cell | None, bold: str = "**") -> str:
    """A cell for people."""
    if cell is None:
        return ""
    if cell.ours is None:
        return "-"
    text = number(cell.ours, cell.unit)
    apart = cell.seeds_low is not None and cell.seeds_high - cell.seeds_low > 0.005 * abs(cell.ours)
    if apart:
        text += f" ({number(cell.seeds_low, cell.unit)} to {number(cell.seeds_high, cell.unit)})"
    if cell.low_95 is not None:
        text = f"{bold}{text}{bold} [{number(cell.low_95, cell.unit)} to {number(cell.high_95, cell.unit)}]"
    if cell.note:
        text += f" {cell.note}"
    if cell.bound is not None:
        text += f" ≤ {number(cell.bound, cell.unit)}"
    if cell.flag:
        text += f" {MARKS[cell.flag]}"
    if cell.paper is not None:
        text += f"; paper {number(cell.paper, cell.unit)}, {100 * cell.deviation:+.0f} %"
    return text


def grid(cells: list[Cell], bold: str = "**") -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Of a panel: its series, and each row with a text for each of them."""
    series = list(dict.fromkeys(cell.series for cell in cells))
    rows = list(dict.fromkeys(cell.row for cell in cells))
    at = {(cell.row, cell.series): cell for cell in cells}
    return series, [(row, [shown(at.get((row, name)), bold) for name in series]) for row in rows]


def _panel(panel: str, cells: list[Cell]) -> list[str]:
    series, rows = grid(cells)
    lines = [f"## {panel}", "", *table_head(["", *series])]
    lines += [table_row([row, *texts]) for row, texts in rows]
    return [*lines, ""]


def _missing(cells: list[Cell]) -> list[str]:
    by_reason: dict[str, int] = {}
    for cell in cells:
        if cell.ours is None:
            by_reason[cell.note] = by_reason.get(cell.note, 0) + 1
    return [f"- {count} without a number: {why}" for why, count in by_reason.items()]


LEGEND = (
    "In a cell: ours, in parentheses the lowest and highest seed where they are apart, in brackets the 95 % interval "
    "of a mean over workloads (Student's t, of logarithms where the mean is geometric), then the paper's number, where "
    "its text gives one, and ours / the paper's - 1. ≤: the same where calls cost nothing beside the signals, with the "
    f"first seed. {MARKS[BEHIND]}: {BEHIND}. {MARKS[ABOVE]}: {ABOVE} by more than {100 * LEVEL:.0f} %, so that it "
    "bounds nothing there."
)


# In a table whose data was made so: older tables are of one layout.
LAYOUTS = (
    "Each seed has addresses of its own for stack, heap, libraries and program: what is over seeds is over layouts."
)


def over_layouts(table: Path) -> bool:
    """What a figure's Markdown file says of its data."""
    return LAYOUTS in table.read_text()


def as_markdown(paper: Paper, figure: Figure, cells: list[Cell], made_by: str, layouts: bool) -> str:
    lines = [f"# {paper.heading(figure)}", ""]
    lines += [f"Made by: `{made_by}`", "", figure.reads, "", LEGEND, ""]
    if layouts:
        lines += [LAYOUTS, ""]
    if missing := _missing(cells):
        lines += [*missing, ""]
    lines += [f"![{figure.title}]({figure.name}.svg)", ""]
    for panel in dict.fromkeys(cell.panel for cell in cells):
        lines += _panel(panel, [cell for cell in cells if cell.panel == panel])
    return "\n".join(lines).rstrip() + "\n"


def write(paper: Paper, figure: Figure, cells: list[Cell], folder: Path, made_by: str, layouts: bool) -> None:
    """`layouts`: each seed has its own."""
    folder.mkdir(parents=True, exist_ok=True)
    as_csv(figure, cells, folder / f"{figure.name}.csv")
    (folder / f"{figure.name}.md").write_text(as_markdown(paper, figure, cells, made_by, layouts))
    draw.draw(figure, [cell for cell in cells if figure.pictured(cell.panel)], folder / f"{figure.name}.svg")


def index(paper: Paper, folder: Path) -> Path:
    """Of all figures: those that are there, whoever made them, and why the others are not."""
    lines = [f"# {paper.title}'s figures, made again", "", *table_head(["figure", "", "numbers", "picture"])]
    for figure in paper.figures:
        there = (folder / f"{figure.name}.md").exists()
        if why := figure.missing():
            lines.append(table_row([figure.name, figure.title, f"missing: {why}", ""]))
        elif there:
            links = (f"[table]({figure.name}.md), [CSV]({figure.name}.csv)", f"[SVG]({figure.name}.svg)")
            lines.append(table_row([figure.name, figure.title, *links]))
        else:
            lines.append(table_row([figure.name, figure.title, "not made yet", ""]))
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "figures.md"
    file.write_text("\n".join(lines) + "\n")
    return file
