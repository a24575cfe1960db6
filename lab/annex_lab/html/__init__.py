"""The results as one HTML file for people: tables, pictures and commands, with nothing to load from anywhere."""

from pathlib import Path


def write(document: dict, folder: Path) -> Path:
    """Writes folder/index.html from a results document (format 2); returns its path."""
    from annex_lab.html import page  # here, since matplotlib takes a second that only a report is worth

    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "index.html"
    target.write_text(page.render(document), encoding="utf-8")
    return target


def draw_scaling(document: dict, path: Path) -> bool:
    """Draws how the programs scale with threads into a file: html/scaling.py. False where none ran with enough."""
    from annex_lab.html import scaling, shape

    return scaling.write(shape.Data(shape.clean(document)), path)
