"""What annex-lab energy --json writes, as people read it: on the terminal, and in docs/hardware-energy.md."""

from io import StringIO
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from annex_lab.sim import summary
from annex_lab.sim.energy import model
from annex_lab.sim.energy.parameters import Estimate

CHIP, WHOLE = "chip", "chip and memory"
WIDTH = 100  # of a page


def number(value: float, digits: int = 3) -> str:
    return f"{value:,.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:#.{digits}g}"


def with_interval(of: Estimate, scale: float = 1, digits: int = 2) -> str:
    """The ends of the interval with so many digits."""
    low, high = (number(end * scale, digits) for end in (of.low, of.high))
    return f"{number(of.value * scale)} [{low}, {high}]"


def _cell(of: dict, scale: float = 1, digits: int = 2) -> Text:
    return Text(with_interval(Estimate(**of), scale, digits))


def _details(run: dict) -> Table:
    table = summary.table_of("", "mJ", "share", "W", "mm2", gap=1)
    energy, area = run["energy_j"], run["area_mm2"]
    for name, of in energy.items():
        table.add_row(
            name,
            _cell(of, 1e3),
            "" if name in (CHIP, WHOLE, model.MEMORY) else f"{100 * of['value'] / energy[CHIP]['value']:.2f} %",
            number(run["power_w"][name]["value"]),
            _cell(area[name]) if name in area else "",
            style="bold" if name in (CHIP, WHOLE) else "",
        )
    return table


def _compared(base: dict, runs: list[dict]) -> Table:
    table = summary.table_of("base / this", "time", "energy: chip", WHOLE, "power: chip", gap=1)
    for run in runs:
        saved = (run["saving"][CHIP], run["saving"][WHOLE], run["saving_of_power"])
        time = base["seconds"] / run["seconds"]
        table.add_row(Path(run["file"]).stem, f"{time:.3f}", *(_cell(of, digits=3) for of in saved))
    return table


def _moved(run: dict) -> Table:
    table = summary.table_of("one parameter alone", "range", "energy: chip", gap=1)
    for of in run["by_parameter"]:
        spread = f"{of['low']:g} to {of['high']:g} {of['unit']}"
        table.add_row(of["name"], spread, _cell(of["saving"], digits=3))
    return table


def document(of: dict) -> RenderableType:
    base, runs = of["base"], of["runs"]
    parts: list[RenderableType] = []
    for run in [*([base] if base else []), *runs]:
        parts += [Text.assemble((run["name"], "bold"), f": {1e3 * run['seconds']:.3f} ms"), _details(run), ""]
    if base:
        parts.append(_compared(base, runs))
    for run in runs:
        if "by_parameter" in run:
            parts += ["", Text(Path(run["file"]).stem, "bold"), _moved(run)]
    return Group(*parts)


def as_text(of: dict) -> str:
    """For a page: without colours, and no spaces at the ends of lines."""
    written = StringIO()
    Console(file=written, width=WIDTH).print(document(of))
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines()).rstrip()
