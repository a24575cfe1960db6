"""Pages of docs/ have the numbers of docs/campaigns, and those their intervals."""

import json
import shutil
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from annex_lab import cli, intervals, paths
from annex_lab.sim.figures import campaign_data, told
from annex_lab.sim.figures.cells import ABOVE, SHARE, Cell
from annex_lab.sim.figures.values import AVERAGE, LEVEL, MEAN
from annex_lab.sim.figures.write import LAYOUTS, LEGEND, read_csv

DOCS = paths.ROOT / "docs"
CSVS = sorted((DOCS / "campaigns").glob("*/*.csv"))


def test_the_pages_say_what_their_data_says():
    assert told.differences(DOCS) == []


def test_the_pages_with_measured_numbers_are_made_of_data():
    """The others of the hardware's pages have parameters alone, and are kept from typing a decimal."""
    made = {file.name.removesuffix(told.ENDING) for file in DOCS.glob(f"*{told.ENDING}")}
    hardware = {f"hardware-{name}" for name in ("energy", "mallacc", "memento", "speedmalloc")}
    assert made == {"findings", "figures", "simulator-table3"} | hardware
    assert {page.stem for page in told.without_template(DOCS)} == {"hardware-new-unit", "hardware-support-core"}


@pytest.mark.parametrize("template", sorted(DOCS.glob(f"*{told.ENDING}")), ids=lambda template: template.stem)
def test_a_page_is_not_made_of_other_data(template, monkeypatch):
    """Each number a little larger: the page is another one, or its words no longer hold."""
    monkeypatch.setattr(
        campaign_data,
        "read_csv",
        lambda file: [replace(cell, ours=cell.ours and 1.1 * cell.ours) for cell in read_csv(file)],
    )
    page = template.with_name(template.name.removesuffix(told.ENDING) + ".md").read_text()
    try:
        assert told.render(template) != page
    except told.Wrong as why:
        assert "the data does not say" in str(why)


@pytest.fixture
def docs(tmp_path):
    """A page of one number, with the data behind it."""
    shutil.copytree(DOCS / "campaigns/speedmalloc", tmp_path / "campaigns/speedmalloc")
    (tmp_path / "page.md.j2").write_text(
        '# A page\n\n{% set ladder = data("speedmalloc/17") %}\n'
        'On it Annex is at {{ ladder("annex, over itself in software", mean, "speedmalloc") | interval }}.\n'
    )
    assert told.differences(tmp_path, write=True) == [] == told.differences(tmp_path)
    return tmp_path


def test_a_number_that_is_not_its_datas_is_found(docs):
    page = docs / "page.md"
    assert page.read_text().endswith("\nOn it Annex is at 0.51 [0.30 to 0.86].\n")
    page.write_text(page.read_text().replace("0.51", "0.91"))
    found = told.differences(docs)
    assert found[0] == "page.md differs from what page.md.j2 makes:"
    assert found[-1] == "+On it Annex is at 0.51 [0.30 to 0.86]."
    assert CliRunner().invoke(cli.app, ["figures", "pages", "--docs", str(docs)]).exit_code == 1
    assert CliRunner().invoke(cli.app, ["figures", "pages", "--docs", str(docs), "--write"]).exit_code == 0
    assert told.differences(docs) == []


def test_data_that_has_changed_under_a_page_is_found(docs):
    csv = docs / "campaigns/speedmalloc/17.csv"
    cell = told.Data("17", csv)("annex, over itself in software", MEAN, "speedmalloc")
    row = f'"{cell.panel}",{cell.row},{cell.series},'
    csv.write_text(csv.read_text().replace(f"{row}{cell.ours:.6g}", f"{row}0.6"))
    assert "+On it Annex is at 0.60 [0.30 to 0.86]." in told.differences(docs)


def test_a_number_without_data_is_refused(docs):
    template = docs / "page.md.j2"
    text = template.read_text()
    template.write_text("    a command --scale 0.2\n\n" + text + "With larson it is at 0.33.\n")
    assert told.differences(docs) == ["page.md.j2 types 0.33, which must come from data"]
    template.write_text(text + "{# typed: 0.33 #}With larson it is at 0.33, says the paper.\n")
    assert not any("types" in line for line in told.differences(docs))
    for wrong, why in [
        ('{{ ladder("annex", mean, "speedmalloc") | ours }}', "has no number at 'annex'"),
        ('{{ data("speedmalloc/18") }}', "there is no data called speedmalloc/18"),
        ('{{ "it is ahead" | where(ladder("annex, over itself in software", mean, "speedmalloc").ours > 1) }}',
         'the data does not say: "it is ahead"'),
        ("{{ unknown }}", "'unknown' is undefined"),
    ]:  # fmt: skip
        template.write_text(text + wrong + "\n")
        (found,) = told.differences(docs)
        assert why in found


def test_a_page_about_hardware_without_template_types_no_number(tmp_path):
    page = tmp_path / "hardware-unit.md"
    page.write_text("# A unit\n\nAs in `--set x=0.2`, a link takes 8 cycles.\n")
    assert told.differences(tmp_path) == []
    page.write_text("# A unit\n\nSection 4.1. It is at 0.33 of software.\n")
    assert told.differences(tmp_path) == ["hardware-unit.md types 4.1, 0.33, which must come from data"]
    page.write_text("# A unit\n\n<!-- typed: 4.1 -->\n\nSection 4.1.\n")
    assert told.differences(tmp_path) == []


def test_energy_is_told_as_the_command_wrote_it(tmp_path):
    shutil.copytree(DOCS / "campaigns/energy", tmp_path / "campaigns/energy")
    template = tmp_path / "page.md.j2"
    template.write_text(
        '# A page\n\n{% set mstress = energy("mstress") %}{{ mstress.base.energy_j.chip | estimate(scale=1000) }} mJ\n'
        '{{ mstress | energy_tables }}\n{{ parameter("support.power").value }}\n'
    )
    assert told.differences(tmp_path, write=True) == []
    page = (tmp_path / "page.md").read_text()
    chip = json.loads((tmp_path / "campaigns/energy/mstress.json").read_text())["base"]["energy_j"]["chip"]
    assert f"{1000 * chip['value']:.0f} [{1000 * chip['low']:.0f}, {1000 * chip['high']:.0f}] mJ" in page
    assert "\nmain cores " in page and "\none parameter alone " in page and page.endswith("\n0.3372\n")
    for wrong, why in [
        ('{{ energy("larson") }}', "there is no estimate of energy called larson"),
        ('{{ parameter("core.colour") }}', "no parameter called core.colour"),
    ]:
        template.write_text("# A page\n\n" + wrong)
        (found,) = told.differences(tmp_path)
        assert why in found


def test_seeds_are_over_layouts_where_the_table_says_so(docs):
    """Data of before, which was made at one layout, claims none."""
    template = docs / "page.md.j2"
    template.write_text('# A page\n\n{% set one, two = data("speedmalloc/17"), data("speedmalloc/density") %}\n'
                        'Three seeds{{ addresses(one) }}. Both{{ addresses(one, two) }}.\n')  # fmt: skip

    def said() -> str:
        assert told.differences(docs, write=True) == []
        return (docs / "page.md").read_text().splitlines()[-1]

    def make_anew(name: str) -> None:
        table = docs / f"campaigns/speedmalloc/{name}.md"
        table.write_text(table.read_text().replace(LEGEND, f"{LEGEND}\n\n{LAYOUTS}"))

    assert said() == "Three seeds. Both."
    make_anew("17")
    assert said() == "Three seeds, each with addresses of its own. Both, some with other addresses."
    make_anew("density")
    assert said() == "Three seeds, each with addresses of its own. Both, each with addresses of its own."


def test_how_numbers_are_written():
    cell = Cell("a", "b", "c", 0.6147, low_95=0.5, high_95=1.2, paper=0.7, bound=0.65)
    assert (told.ours(cell), told.interval(cell)) == ("0.61", "0.61 [0.50 to 1.20]")
    assert told.change(cell) == "-39 %" and told.change(cell, interval=True) == "-39 % [-50 to 20]"
    part = Cell("a", "b", "c", 0.0046, low_95=-0.0041, high_95=0.0138, unit=SHARE)
    assert told.saved(part, 1, interval=True) == "-0.5 % [-1.4 to 0.4]"
    assert told.saved(part) == "0 %"  # not -0
    assert told.share(part, 1, interval=True) == "0.5 % [-0.4 to 1.4]"
    assert told.span([0.5, cell]) == "0.50 to 0.61"
    with pytest.raises(told.Wrong):
        told.interval(Cell("a", "b", "c", 1.0))


@pytest.mark.parametrize("csv", CSVS, ids=lambda csv: f"{csv.parent.name}/{csv.stem}")
def test_intervals_in_campaigns_are_those_of_their_workloads(csv):
    """Where the workloads that a mean is over stand in the same column."""
    cells = read_csv(csv)
    of_parameters = csv.parent.name == "speedmalloc" and csv.stem == "13"  # the energy model's
    for mean in cells:
        if mean.row not in (MEAN, AVERAGE) or mean.low_95 is None or of_parameters:
            continue
        column = [cell for cell in cells if (cell.panel, cell.series) == (mean.panel, mean.series)]
        values = [cell.ours for cell in column if cell.ours is not None and not cell.row.startswith((MEAN, AVERAGE))]
        if len(values) < intervals.ENOUGH:
            continue
        ends = intervals.of_mean(values) if mean.row == AVERAGE else intervals.of_geometric_mean(values)
        assert (mean.low_95, mean.high_95) == pytest.approx(ends, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("csv", CSVS, ids=lambda csv: f"{csv.parent.name}/{csv.stem}")
def test_what_stands_above_its_printed_bound_is_marked(csv):
    for cell in read_csv(csv):
        if cell.bound is not None and cell.ours is not None:
            assert (cell.flag == ABOVE) == (cell.ours > cell.bound * (1 + LEVEL))
