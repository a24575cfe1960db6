"""The results document and the Markdown made from it: the published schema, merging, losses as plain as wins."""

import copy
import json

import jsonschema
import pytest
from conftest import document_of
from test_stats import NOISE, PROGRAMS

from annex_lab import document as documents
from annex_lab.allocators import Allocator
from annex_lab.bench import Bench, Listener, Plan
from annex_lab.journal import Journal
from annex_lab.report import Report, unit_of

pytestmark = pytest.mark.usefixtures("small_groups")


def rounds(seconds: float, peak: int = 50000) -> list[tuple[float, int]]:
    return [(seconds * factor, peak) for factor in NOISE]


@pytest.fixture
def document():
    figures = {
        ("tiny", "glibc"): rounds(0.01, 3000),
        ("tiny", "annex-solo"): rounds(0.02, 3000),
        ("big", "glibc"): rounds(4.0),
        ("big", "annex-solo"): rounds(1.0),
        ("server", "glibc"): rounds(2.0),
    }
    return document_of(figures, {name: what for name, what in PROGRAMS.items() if name != "pattern"})


def check(document: dict) -> None:
    jsonschema.validate(json.loads(json.dumps(document)), json.loads(documents.SCHEMA.read_text()))


def test_the_schema_is_one_and_refuses_what_is_wrong(document):
    jsonschema.Draft202012Validator.check_schema(json.loads(documents.SCHEMA.read_text()))
    check(document)
    document["results"][0]["score"] = -1
    with pytest.raises(jsonschema.ValidationError):
        check(document)


def test_what_a_run_writes_fits_the_schema(program, context, tmp_path):
    programs = [program("/bin/true"), program("/bin/true", name="absent", needs=("no-such-program",))]
    programs += [program("/bin/false", name="broken")]
    allocators = [Allocator("glibc", None, "1"), Allocator("again", None, "1")]
    outcome = Bench(Plan(programs, allocators, 3, 0, 0), context, Listener(), Journal(tmp_path, {})).run()
    options = {"command": "c", "suite": None, "rounds": 3, "scale": 1.0, "threads": [2], "cpus": [0]}
    absent = [{"allocator": "x", "why": "y"}]
    document = documents.of_run(outcome, programs, allocators, absent, context, options)
    check(document)
    assert len(document["results"]) == 6 and document["results"][0]["score"] == document["results"][0]["wall_s"]
    assert document["programs"]["quick"]["command"] and document["failures"][0]["workload"] == "broken"
    text = Report(document).as_markdown()
    for said in ("absent was left out", "broken under glibc", "x was left out: y", "bound to CPU 0", "## Page faults"):
        assert said in text


def test_losses_are_shown_as_plainly_as_wins(document):
    text = Report(document).as_markdown()
    small = next(line for line in text.splitlines() if line.startswith("| single, small"))
    large = next(line for line in text.splitlines() if line.startswith("| single, large"))
    assert "**2.000**" in small
    assert "0.250" in large and "**" not in large
    row = next(line for line in text.splitlines() if line.startswith("| server"))
    assert row.startswith("| server, s | **2.00**") and row.endswith("| - |")
    document["failures"].append({"workload": "server", "allocator": "annex-solo", "why": "it did not"})
    assert "(4 %) | failed |" in Report(document).as_markdown()
    assert "| CPU time | tiny | glibc | 2.000 [2.000, 2.000] |" in text


def test_a_loss_within_the_noise_is_no_loss():
    figures = {("big", "glibc"): [(1.0, 1), (1.3, 1), (0.8, 1)], ("big", "annex"): [(1.1, 1), (0.9, 1), (1.2, 1)]}
    text = Report(document_of(figures)).as_markdown()
    row = next(line for line in text.splitlines() if line.startswith("| single | 1 |"))
    assert "1.045" in row and "**" not in row  # the cube root of 1.1 * 0.9 * 1.2 / (1.3 * 0.8)


def test_without_annex_everybody_is_compared_with_glibc():
    report = Report(document_of({("big", "glibc"): rounds(1), ("big", "jemalloc"): rounds(2)}))
    assert report.subjects() == ["jemalloc"] and report.bases("jemalloc") == ["glibc"]


def test_units():
    assert unit_of("cpu_s", 2) == ("s", 1) and unit_of("cpu_s", 0.02) == ("ms", 1e3)
    assert unit_of("score", 3e-8) == ("ns", 1e9) and unit_of("minor_faults", 5) == ("", 1)


def test_merging_runs_with_different_programs(document):
    other = document_of({("new", "glibc"): rounds(1), ("new", "annex-solo"): rounds(3)})
    whole = documents.merged({"a": document, "b": other})
    check(whole)
    assert list(whole["programs"]) == ["tiny", "big", "server", "new"]
    assert len(whole["results"]) == len(document["results"]) + len(other["results"])
    (single,) = [
        g for g in whole["geomeans"] if (g["group"], g["allocator"], g["metric"]) == ("single", "annex-solo", "cpu_s")
    ]
    assert single["programs"] == 3 and single["ratio"] == pytest.approx((2 * 0.25 * 3) ** (1 / 3))


def test_runs_that_do_not_belong_together_are_not_merged(document):
    with pytest.raises(documents.Unusable, match="each program in one run alone"):
        documents.merged({"a": document, "b": document})
    other = document_of({("new", "glibc"): rounds(1), ("new", "annex-solo"): rounds(3)})
    for what, where in (("machine", "cpu"), ("allocators", "glibc")):
        changed = copy.deepcopy(other)
        changed[what][where] = {} if what == "allocators" else "another"
        with pytest.raises(documents.Unusable, match=f"not the same {what}"):
            documents.merged({"a": document, "b": changed})
