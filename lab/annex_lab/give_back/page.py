"""docs/give-back.md, made by html/give_back.md.j2 of the data in campaigns/give-back beside it."""

import re
from importlib import resources
from pathlib import Path

import jinja2

from annex_lab.give_back import bursts, day, results, table

DATA = Path("campaigns/give-back")  # beside the page
PICTURE = DATA / "day.svg"


def data_file(page: Path, kind: str) -> Path:
    return page.parent / DATA / f"{kind}.json"


def _loaded(page: Path, kind: str) -> dict | None:
    """The data of that kind, where there is any; raises Unusable where it is something else."""
    file = data_file(page, kind)
    return results.load(file, kind) if file.exists() else None


def _settings(env: dict[str, str]) -> str:
    return " ".join(f"`{name}={value}`" for name, value in env.items())


def _foreign(document: dict) -> str:
    """What others used of the machine meanwhile, in CPU seconds a run."""
    found = [row["values"]["foreign_cpu_s"] for row in document["results"] if "foreign_cpu_s" in row["values"]]
    return f"{sum(found) / len(found):.2g}" if found else "0"


def render(page: Path) -> str:
    """The page's text; raises Unusable."""
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    environment.filters |= {"settings": _settings, "foreign": _foreign}
    template = (resources.files("annex_lab.html") / "give_back.md.j2").read_text(encoding="utf-8")
    made = environment.from_string(template, globals={"tables": table, "days": day, "bursts_of": bursts}).render(
        **{kind: _loaded(page, kind) for kind in ("table", "day", "bursts")}, picture=PICTURE.as_posix()
    )
    return re.sub(r"\n{3,}", "\n\n", made).strip() + "\n"


def write(page: Path) -> list[Path]:
    """The page, and its picture where there is data of a day; raises Unusable."""
    text = render(page)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text, encoding="utf-8")
    of_day = _loaded(page, "day")
    if of_day is None or not of_day["results"]:
        return [page]
    picture = page.parent / PICTURE
    day.draw(of_day, picture)
    return [page, picture]
