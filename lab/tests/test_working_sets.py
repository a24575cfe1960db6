"""The papers' working sets: no workload has smaller structures than they say, by itself or in a figure, and --scale
makes none smaller. What they say, and who says it, is in workloads/sizes.csv."""

import functools
import re
from pathlib import Path

import pytest

from annex_lab import native, programs
from annex_lab.programs import sizes
from annex_lab.programs.model import Command, Context
from annex_lab.sim.figures.cli import choice_of
from annex_lab.sim.figures.papers import PAPERS

SIZES = sizes.all_sizes()
# Figures that are about smaller structures than the papers', with theirs among them.
SMALLER_ON_PURPOSE = {"working-sets"}


@functools.cache
def options(workload: str) -> dict[str, sizes.Option]:
    return sizes.options_of(native.workloads() / workload)


def test_each_workload_is_in_the_table():
    lists = (sizes.WORKLOADS / "CMakeLists.txt").read_text()
    built = " ".join(re.findall(r"set\(annex_(?:single|multi)_workloads([^)]*)\)", lists)).split()
    assert {size.workload for size in SIZES} == set(built)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size.workload}{size.option}")
def test_a_workload_has_the_size_that_the_table_says_whatever_its_scale(size):
    if not size.option:
        assert not size.theirs.isdecimal() and not size.ours.isdecimal(), "numbers need an option, to be tested"
        return
    option = options(size.workload)[size.option]
    assert option.default == int(size.ours)
    assert option.default >= size.least, f"{size.paper} has more"
    assert not option.is_scaled, "--scale would make it smaller"


def test_a_workload_says_which_options_are_scaled():
    found = options("larson")
    assert found["--replacements"] == sizes.Option(28_000_000, True) and found["--slots"] == sizes.Option(5000, False)


def test_the_readme_has_the_table():
    text = sizes.README.read_text()
    assert sizes.BEGIN + sizes.table() + sizes.END in text, "python -m annex_lab.programs.sizes writes it"


def command(workload: str, scale: float, threads: int) -> list[str]:
    """Of a workload of ours; empty: of another program, whose sizes are those of its input."""
    (program,) = programs.choose("all", [workload])
    if program.kind != "workload":
        return []
    nowhere = Path("/nowhere")
    task = program.run(Context(nowhere, nowhere, nowhere, scale, threads))
    assert isinstance(task, Command)
    return task.argv


FIGURES = [(paper, figure) for paper in PAPERS for figure in paper.figures if not figure.missing()]


@pytest.mark.parametrize(("paper", "figure"), FIGURES, ids=[f"{paper.name}-{figure.name}" for paper, figure in FIGURES])
def test_no_figure_has_a_smaller_structure_than_the_paper(paper, figure):
    asked = figure.chosen(choice_of(paper))
    runs = {(spec.workload, spec.scale, spec.threads, spec.options) for spec in figure.runs(asked)}
    runs |= {
        (workload, one.scale, threads, ())
        for one in figure.measurements(asked)
        for workload in one.workloads
        for threads in one.threads
    }
    found = {}
    for workload, scale, threads, more in runs:
        if argv := command(workload, scale, threads):
            found[workload, more] = sizes.too_small([*argv, *more])
    if figure.name in SMALLER_ON_PURPOSE:
        assert any(found.values()) and [] in found.values()
    else:
        assert [why for all_of_it in found.values() for why in all_of_it] == []


def test_what_is_too_small_is_said():
    assert sizes.too_small(["/x/gap-bfs", "--scale", "0.01", "--vertices=655"]) == ["gap-bfs: 655 vertices, not 65536"]
    assert sizes.too_small(["/x/larson", "--slots", "5000", "--scale", "0.001"]) == []
    assert sizes.too_small(["nas-dc", "--tuples", "500"]) == ["nas-dc: 500 tuples, not 250000"]  # ours: nobody says
