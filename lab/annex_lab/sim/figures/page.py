"""One HTML page of all figures that are made: their pictures, and their numbers beside the papers'."""

import base64
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import jinja2
from markupsafe import Markup

from annex_lab.html import palette, text
from annex_lab.sim.figures import write as files
from annex_lab.sim.figures.figure import Figure, Paper


@dataclass(frozen=True)
class Panel:
    title: str
    series: list[str]
    rows: list[tuple[str, list[str]]]


@dataclass(frozen=True)
class Shown:
    id: str
    called: str
    title: str
    heading: str
    reads: str
    missing: str
    picture: str  # as an address that holds it; "": none
    panels: list[Panel]  # none: it is not made


def _shown(paper: Paper, figure: Figure, folder: Path) -> Shown:
    csv, svg = folder / f"{figure.name}.csv", folder / f"{figure.name}.svg"
    cells = files.read_csv(csv) if csv.exists() else []
    picture = ""
    if cells and svg.exists():
        picture = "data:image/svg+xml;base64," + base64.b64encode(svg.read_bytes()).decode()
    return Shown(
        f"{paper.name}-{figure.name}",
        figure.called,
        figure.title,
        paper.heading(figure),
        f"{figure.reads} {files.LAYOUTS}"
        if cells and files.over_layouts(folder / f"{figure.name}.md")
        else figure.reads,
        figure.missing() or ("" if cells else "not made yet"),
        picture,
        [
            Panel(panel, *files.grid([cell for cell in cells if cell.panel == panel], bold=""))
            for panel in dict.fromkeys(cell.panel for cell in cells)
        ],
    )


def render(papers: list[Paper], made: Path) -> str:
    package = resources.files("annex_lab.html")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {"plural": text.plural}
    template = environment.from_string((package / "figures.html.j2").read_text(encoding="utf-8"))
    css = (package / "style.css").read_text(encoding="utf-8")
    shown = [
        {"title": paper.title, "figures": [_shown(paper, figure, made / paper.name) for figure in paper.figures]}
        for paper in papers
    ]
    return template.render(
        css=Markup(css + palette.css()),
        legend=files.LEGEND,
        papers=shown,
        made=[one for paper in shown for one in paper["figures"] if one.panels],
    )


def write(papers: list[Paper], made: Path, out: Path) -> Path:
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(render(papers, made), encoding="utf-8")
    return out
