"""The HTML report: its numbers, its warnings, odd names, its size; and in a real browser that all of it is there."""

import copy
import cProfile
import html.parser
import json
import os
import platform
import re
from pathlib import Path

import chromium
import jsonschema
import pytest
import synthetic

import annex_lab.html
from annex_lab import paths
from annex_lab.html import labels, page, palette, scaling, text
from annex_lab.html.shape import Data

ALLOCATORS = ["annex", "annex-solo", "glibc", "jemalloc"]
ODD = """python3 -c '<b>&"$x$ \u00e9'"""
DASH = "\N{EN DASH}"
MANY = [f"peer-{number}" for number in range(16)]


class Reader(html.parser.HTMLParser):
    """The page as tables of texts: id of the section -> rows of (class, text); and all text outside of tags."""

    def __init__(self, content: str):
        super().__init__()
        self.section, self.tables, self.rows, self.text = "", {}, [], []
        self.tags: list[tuple[str, dict]] = []
        self._cell = None
        self.feed(content)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        if tag == "h2":
            self.section = attributes["id"]
        elif tag == "tr":
            self.tables.setdefault(self.section, []).append([])
        elif tag in ("td", "th"):
            self._cell = [attributes.get("class", ""), ""]
            self.tables[self.section][-1].append(self._cell)

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self._cell = None

    def handle_data(self, data):
        self.text.append(data)
        if self._cell is not None:
            self._cell[1] += data

    def row(self, section: str, label: str, number: int = 0) -> list[tuple[str, str]]:
        """Class and text of the cells of the number-th row of that name in a section."""
        found = [row for row in self.tables[section] if row and row[0][1] == label]
        return [tuple(cell) for cell in found[number][1:]]


def sample(workload: str, allocator: str, round_: int, seconds: float, peak: int, faults: int = 100) -> dict:
    return {
        "workload": workload,
        "allocator": allocator,
        "threads": 1,
        "round": round_,
        "wall_s": seconds,
        "user_s": seconds / 2,
        "sys_s": seconds / 2,
        "peak_rss_kib": peak,
        "minor_faults": faults,
        "voluntary_switches": 0,
        "involuntary_switches": 0,
        "score": seconds,
        "foreign_cpu_s": 0.0,
        "disturbed": False,
        "tries": 1,
    }


def by_hand(figures: dict[tuple[str, str], list[tuple]], allocators: list[str]) -> dict:
    """A document of given figures: (program, allocator) -> (seconds, KiB[, faults]) of each round."""
    names = list(dict.fromkeys(name for name, _ in figures))
    document = synthetic.document(allocators, len(names), 1, extras=False)
    document["programs"] = dict(zip(names, document["programs"].values(), strict=True))
    document["results"] = [
        sample(name, allocator, round_, *values)
        for (name, allocator), rounds in figures.items()
        for round_, values in enumerate(rounds)
    ]
    document["groups"] = {"all": names}
    document["geomeans"] = synthetic.geomeans(document["results"], document["groups"], allocators)
    document |= {"failures": [], "skipped": [], "absent": [], "interrupted": False}
    return valid(document)


def valid(document: dict) -> dict:
    schema = json.loads((paths.PACKAGE / "schema" / "results.schema.json").read_text())
    jsonschema.validate(document, schema)
    return document


@pytest.fixture(scope="module")
def full() -> dict:
    return valid(synthetic.document(ALLOCATORS, 5, 4))


@pytest.fixture(scope="module")
def full_page(full) -> str:
    return page.render(full)


def test_a_cell_is_the_geometric_mean_of_the_rounds_ratios():
    rounds = {"glibc": [(2.0, 1024), (4.0, 1024), (8.0, 1024)], "annex": [(0.9, 1536), (2.0, 1536), (4.4, 1536)]}
    document = by_hand({("one", name): values for name, values in rounds.items()}, ["glibc", "annex"])
    read = Reader(page.render(document))
    assert read.row("score", "one") == [("absolute", "4.00 s"), ("b6", "0.50")]  # of 0.45, 0.5, 0.55
    assert read.row("cpu_s", "one") == [("absolute", "4.00 s"), ("b6", "0.50")]
    assert read.row("peak_rss_kib", "one") == [("absolute", "1.00 MiB"), ("w5", "1.50")]
    assert read.row("minor_faults", "one") == [("absolute", "100"), ("noise", "~1.00")]


def test_a_difference_that_the_rounds_contradict_is_noise():
    rounds = {"glibc": [(1.0, 9)] * 4, "annex": [(0.8, 9), (1.3, 9), (0.9, 9), (1.1, 9)]}
    document = by_hand({("one", name): values for name, values in rounds.items()}, ["glibc", "annex"])
    kind, shown = Reader(page.render(document)).row("score", "one")[1]
    assert (kind, shown[0]) == ("noise", "~")


def test_geometric_means_have_their_interval_and_how_many_programs():
    figures = {(name, "glibc"): [(1.0, 1000)] for name in ("one", "two")} | {("one", "annex"): [(0.8, 1100)]}
    document = by_hand(figures, ["glibc", "annex"])
    for geomean in document["geomeans"]:
        geomean |= {"low": geomean["ratio"] - 0.02, "high": geomean["ratio"] + 0.02}
    read = Reader(page.render(document))
    assert read.row("means", "all") == [("b4", f"0.8000.78{DASH}0.82, 1 of 2")]
    for geomean in document["geomeans"]:
        geomean |= {"low": 0.7, "high": 1.2}
    assert Reader(page.render(document)).row("means", "all")[0][0] == "noise"


def test_ours_is_held_against_each_other(full, full_page):
    rows = [row for row in Reader(full_page).tables["means"] if row and row[0][1] == "group"]
    heads = [[cell[1] for cell in row[1:]] for row in rows]
    assert heads[0] == ["annex", "annex-solo", "jemalloc"]
    assert heads[1] == ["glibc", "annex-solo", "jemalloc"]
    assert heads[2] == ["glibc", "annex", "jemalloc"]


def test_failures_and_what_is_missing_are_told_before_any_number(full_page):
    head = full_page[: full_page.index('id="means"')]
    for told in ("interrupted", "program-0 under jemalloc: signal 11", "scudo: no package", "left-out: no ruby"):
        assert told in head
    assert Reader(full_page).row("score", "program-0")[-1] == ("failed", "failed")
    assert Reader(full_page).row("counts", "program-0")[-1] == ("failed", "failed")


def test_what_was_never_measured_has_a_dash(full):
    document = copy.deepcopy(full)
    document["results"] = [
        one for one in document["results"] if (one["workload"], one["allocator"]) != ("program-1", "annex")
    ]
    assert Reader(page.render(document)).row("score", "program-1")[1] == ("none", DASH)


def test_a_failure_in_a_later_round_is_marked(full):
    document = copy.deepcopy(full)
    document["failures"].append({"workload": "program-1", "allocator": "annex", "why": "no more"})
    assert Reader(page.render(document)).row("score", "program-1")[1][1].endswith("†")


def test_zeros_are_no_trouble():
    rounds = {"glibc": [(0.0, 0, 0)] * 3, "annex": [(0.0, 10, 5)] * 3}
    document = by_hand({("one", name): values for name, values in rounds.items()}, ["glibc", "annex"])
    read = Reader(page.render(document))
    assert read.row("score", "one") == [("absolute", "0"), ("absolute", "0")]
    assert read.row("peak_rss_kib", "one")[1] == ("absolute", "10.0 KiB")


def test_a_program_with_several_numbers_of_threads_has_a_row_for_each(full):
    document = copy.deepcopy(full)
    for one in list(document["results"]):
        if one["workload"] == "program-1":
            document["results"].append({**one, "threads": 4})
    labels_ = [row.label for row in Data(document).rows]
    assert "program-1, 2 thr" in labels_ and "program-1, 4 thr" in labels_


def scaled(counts: tuple[int, ...]) -> dict:
    """annex scales perfectly, glibc not at all: seconds for a unit of work of both, three rounds, by threads."""
    figures = {}
    for threads in counts:
        figures[f"work/{threads}", "glibc"] = [(1.6, 10, 5), (2.0, 10, 5), (2.5, 10, 5)]
        figures[f"work/{threads}", "annex"] = [(1.0 / threads, 10, 5)] * 3
    document = by_hand(figures, ["glibc", "annex"])
    for one in document["results"]:
        one["threads"] = int(one["workload"].partition("/")[2])
    return valid(document)


def test_a_curve_is_the_pace_over_the_yardsticks_with_the_fewest_threads():
    data = Data(scaled((4, 1, 16)))
    ((name, rows),) = scaling.programs(data).items()
    assert name == "work" and [row.threads for row in rows] == [1, 4, 16]
    curves = scaling.curves(data, rows)
    assert curves["glibc"] == ([1, 4, 16], pytest.approx([1, 1, 1]))
    assert curves["annex"] == ([1, 4, 16], pytest.approx([2, 8, 32]))
    content = page.render(data.document)
    assert '<h2 id="scaling">' in content and "highest with 16 threads: annex, 32" in content


def test_two_numbers_of_threads_are_no_curve(tmp_path):
    document = scaled((1, 2))
    assert '<h2 id="scaling">' not in page.render(document)
    assert not annex_lab.html.draw_scaling(document, tmp_path / "none.svg")
    assert not (tmp_path / "none.svg").exists()


def test_an_allocator_that_failed_with_some_numbers_of_threads_keeps_the_others():
    document = scaled((1, 2, 4))
    document["results"] = [
        one for one in document["results"] if (one["workload"], one["allocator"]) != ("work/4", "annex")
    ]
    data = Data(document)
    ((_, rows),) = scaling.programs(data).items()
    assert scaling.curves(data, rows)["annex"] == ([1, 2], pytest.approx([2, 4]))
    assert "highest with 4 threads: glibc, 1" in page.render(document)


def test_curves_are_drawn_into_a_file_the_same_every_time(tmp_path):
    for name in ("a.svg", "b.svg", "c.png"):
        assert annex_lab.html.draw_scaling(scaled((1, 2, 4)), tmp_path / name)
    drawing = (tmp_path / "a.svg").read_text()
    assert drawing == (tmp_path / "b.svg").read_text()
    assert all(word in drawing for word in (">work<", ">annex<", ">glibc<", ">threads<", palette.OURS[0]))
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_odd_names_are_text_and_nothing_else(full):
    document = copy.deepcopy(full)
    raw = json.dumps(document).replace("program-1", json.dumps(ODD + "\x01</script><script>alert(1)")[1:-1])
    document = valid(json.loads(raw))
    document["options"]["command"] = f"annex-lab bench -- {ODD}"
    content = page.render(document)
    assert "<b>&" not in content and "alert(1)" in content
    read = Reader(content)
    assert sum(tag == "script" for tag, _ in read.tags) == 1
    assert any(ODD in cell[1] for row in read.tables["commands"] for cell in row)
    assert "\x01" not in content


def test_the_commands_are_there(full_page, full):
    read = Reader(full_page)
    assert full["options"]["command"] in "".join(read.text)
    assert read.row("commands", "program-3")[-1] == ("wide", "program-3 --seed 3")
    assert ["SETTING=yes" in cell[1] for cell in read.tables["allocators"][1]].count(True) == 1


def test_sections_with_nothing_to_show_are_absent(full):
    bare = {key: value for key, value in full.items() if key not in ("counts", "latencies")}
    content = page.render(bare)
    ids = set(re.findall(r'<h2 id="(\w+)"', content))
    assert "counts" not in ids and "latency" not in ids and {"means", "scatter", "spread"} <= ids
    assert set(re.findall(r'<a href="#(\w+)"', content)) == ids
    calm = {**bare, "failures": [], "absent": [], "skipped": [], "interrupted": False}
    calm["results"] = [{**one, "disturbed": False} for one in calm["results"]]
    assert 'class="warnings"' not in page.render(calm)


def test_nothing_comes_from_elsewhere_and_ids_are_unique(full_page):
    assert "http:" not in full_page and "https:" not in full_page and "@import" not in full_page
    read = Reader(full_page)
    assert not [tag for tag, attributes in read.tags if tag == "link" or "src" in attributes]
    ids = [attributes["id"] for _, attributes in read.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    used = [attributes["href"][1:] for tag, attributes in read.tags if tag == "use"]
    assert used and set(used) <= set(ids)


def test_every_picture_says_what_it_is(full_page):
    read = Reader(full_page)
    pictures = [attributes for tag, attributes in read.tags if tag == "svg"]
    # two of time against memory for all, one for a part; five programs' samples; two calls of each
    assert len(pictures) == 3 + 5 + 10
    assert all(one["role"] == "img" and one["aria-label"] for one in pictures)
    assert sum(tag == "figcaption" for tag, _ in read.tags) == len(pictures)


def test_the_same_results_make_the_same_page(full, full_page):
    assert page.render(full) == full_page


def test_text_is_readable_on_every_colour():
    for theme in palette.CELLS:
        for name, colour in palette.cell_colours(theme).items():
            assert palette.contrast(colour, palette.text_on(colour)) >= 4.5, (theme, name)
    for which, card in ((0, "#ffffff"), (1, "#1c1f24")):
        for pair in [palette.OURS, *palette.SERIES]:
            assert palette.contrast(pair[which], card) >= 3, pair


@pytest.mark.parametrize(
    ("ratio", "kind"), [(1.0, "l0"), (1.009, "l0"), (1.02, "w1"), (1 / 1.02, "b1"), (2, "w6"), (0.1, "b6"), (0, "b6")]
)
def test_colours_go_by_the_logarithm(ratio, kind):
    assert palette.step(ratio) == kind


def test_numbers_are_short():
    assert [text.seconds(value) for value in (0, 1.234, 0.0123, 4.5e-8)] == ["0", "1.23 s", "12.3 ms", "45.0 ns"]
    assert [text.kib(value) for value in (0, 1, 2048, 3 << 20)] == ["0", "1.00 KiB", "2.00 MiB", "3.00 GiB"]
    assert [text.ratio(value) for value in (0.834, 12.34, 1234)] == ["0.83", "12.3", "1234"]


def test_labels_keep_out_of_each_others_way():
    points = {f"name{number}": (100.0 + number, 100.0) for number in range(6)}
    found = list(labels.places(points, [], labels.Box(0, 0, 300, 200), 10).values())
    overlaps = [a.overlap(b) for i, a in enumerate(found) for b in found[:i]]
    assert max(overlaps) < 1


@pytest.mark.parametrize(
    ("allocators", "programs", "rounds"), [(["glibc"], 1, 1), (["mine"], 2, 2), (["a", "b"], 1, 3)]
)
def test_small_runs(tmp_path, allocators, programs, rounds):
    document = valid(synthetic.document(allocators, programs, rounds, extras=False))
    target = annex_lab.html.write(document, tmp_path / "new" / "folder")
    assert target == tmp_path / "new" / "folder" / "index.html"
    assert f">{document['results'][0]['workload']}</th>" in target.read_text()


def test_a_run_without_a_sample(full):
    document = {**full, "results": [], "geomeans": [], "groups": {}, "counts": [], "latencies": []}
    assert "not a single sample" in page.render(valid(document))


def test_a_campaign_stays_small():
    """70 programs under 18 allocators shall take less than 12 MB and a minute: here, a tenth of that.

    The minute is counted in calls of functions, which no busy machine makes more of; a quiet one makes 1.6 million in
    a second.
    """
    document = synthetic.document(["annex", "glibc", *MANY], 7, 7)
    with cProfile.Profile() as profile:
        content = page.render(document)
    assert len(content.encode()) < 12e6 / 10
    assert sum(function.callcount for function in profile.getstats()) < 60 * 1.6e6 / 10


@pytest.fixture(scope="module")
def written(tmp_path_factory, full) -> str:
    """The address of a report with everything in it, an odd command of the user's own too."""
    if chromium.find() is None:
        missing = f"no browser here to look at the page: install one of {', '.join(chromium.NAMES)}"
        if os.environ.get("ANNEX_REQUIRE_ALL") == "1" and platform.freedesktop_os_release()["ID"] == "debian":
            pytest.fail(missing)  # Ubuntu has browsers as snaps only
        pytest.skip(missing)
    document = json.loads(json.dumps(full).replace("program-1", json.dumps(ODD)[1:-1]))
    return annex_lab.html.write(document, tmp_path_factory.mktemp("report")).as_uri()


@pytest.fixture
def browse(written, tmp_path):
    def open_(**how) -> chromium.Page:
        return chromium.Page(written, tmp_path / "profile", **how)

    return open_


PICTURES = """
  [...document.querySelectorAll("svg")].map((svg) => {
    const box = svg.getBoundingClientRect();
    const marks = [...svg.querySelectorAll("path, use")].filter((one) => {
      const at = one.getBoundingClientRect();
      return at.width + at.height > 0;
    });
    const texts = [...svg.querySelectorAll("text")].filter((one) => one.getBBox().width > 0);
    return {label: svg.ariaLabel, width: box.width, height: box.height, marks: marks.length, texts: texts.length};
  })
"""


def test_a_browser_shows_every_picture_and_complains_of_nothing(browse, written):
    with browse() as shown:
        pictures = shown.evaluate(PICTURES)
        assert len(pictures) == 18
        for one in pictures:
            assert one["width"] > 200 and one["height"] > 50, one
            assert one["marks"] > 5 and one["texts"] > 3, one
        assert ODD in "".join(one["label"] for one in pictures)
        assert shown.evaluate("document.querySelectorAll('b').length") > 0
        assert shown.console == []
        assert shown.requests == [written]


def test_the_check_of_the_console_sees_an_error(browse):
    with browse() as shown:
        shown.evaluate("setTimeout(() => { throw new Error('planted') }); new Promise((done) => setTimeout(done, 50))")
        assert any("planted" in line for line in shown.console)


def test_a_click_on_a_heading_sorts(browse):
    column = """
      [...document.querySelector("#score").parentElement.querySelectorAll("tbody:first-of-type tr")]
        .filter((row) => row.cells.length > 1).map((row) => Number(row.cells[2].dataset.v))
    """
    click = "document.querySelector('#score').parentElement.querySelectorAll('thead th')[2].click()"
    with browse() as shown:
        before = shown.evaluate(column)
        shown.evaluate(click)
        rising = shown.evaluate(column)
        shown.evaluate(click)
        falling = shown.evaluate(column)
        shown.evaluate(click)
        assert shown.evaluate(column) == before
        assert rising == sorted(before) and falling == rising[::-1] and len(set(before)) > 1
        assert shown.console == []


@pytest.mark.parametrize("width", [360, 800, 1600])
def test_only_tables_scroll_sideways(browse, width):
    with browse(width=width) as shown:
        assert shown.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_a_dark_page_is_dark_and_its_pictures_are_light_on_it(browse):
    script = """
      (() => {
        const of = (element, what) => getComputedStyle(element)[what].match(/\\d+/g).slice(0, 3).map(Number);
        const sum = (colour) => colour.reduce((a, b) => a + b);
        return [sum(of(document.body, "backgroundColor")), sum(of(document.querySelector("svg text"), "fill"))];
      })()
    """
    with browse() as shown:
        light = shown.evaluate(script)
    with browse(dark=True) as shown:
        dark = shown.evaluate(script)
    assert light[0] > 700 and light[1] < 200
    assert dark[0] < 200 and dark[1] > 600


def test_it_prints(browse, tmp_path):
    with browse(dark=True) as shown:
        shown.pdf(tmp_path / "report.pdf")
    assert Path(tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
