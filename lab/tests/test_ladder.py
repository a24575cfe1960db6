"""The ladder of protocols: from a run's results to a table and a picture, or a word on what is missing."""

import copy
import xml.etree.ElementTree

import pytest
import synthetic
from typer.testing import CliRunner

from annex_lab import cli, document, ladder, stats


def times(workload: str, allocator: str, call: str, histogram: list) -> dict:
    return {
        "workload": workload,
        "allocator": allocator,
        "call": call,
        "histogram": histogram,
        "p50_ns": 20.0,
        "p999_ns": 300.0,
    }


@pytest.fixture
def results() -> dict:
    made = copy.deepcopy(synthetic.document(list(ladder.LADDER), 2, 3, extras=False))
    made["results"] = [row for row in made["results"] if row["workload"] == "program-1"]
    for row in made["results"]:
        row.update(user_s=4.0, sys_s=0.0, support_cpu_s=1.0 if "offload" in row["allocator"] else 0.0)
    made["latencies"] = [
        times("program-1", step, call, [[50.0, 90], [200.0, 10]])
        for step in ladder.LADDER
        for call in ("malloc", "free")
    ]
    return made


def test_each_step_is_set_against_the_shared_flavour(results):
    rungs = ladder.climb(results)
    assert [rung.step for rung in rungs] == list(ladder.LADDER)
    assert rungs[0].ratios["score"].ratio == 1
    assert rungs[3].ratios["own_cpu_s"].ratio == pytest.approx(0.75)
    assert rungs[3].ratios["cpu_s"].ratio == pytest.approx(1)
    assert rungs[1].calls["free"] == ladder.Calls(20.0, 300.0, 0.1)


def test_as_table_and_picture(results, tmp_path):
    (tmp_path / "results.json").write_text("{}")
    document.save(results, tmp_path / "results.json")
    done = CliRunner().invoke(cli.app, ["ladder", str(tmp_path / "results.json"), "--report", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    table = (tmp_path / "out" / "ladder.md").read_text()
    assert "| program-1 | annex-offload-queue |" in table and "0.75 [0.75, 0.75]" in table and "10 %" in table
    picture = xml.etree.ElementTree.parse(tmp_path / "out" / "ladder.svg").getroot()
    assert picture.tag.endswith("svg")


@pytest.mark.parametrize("without", ["results", "latencies"])
def test_what_is_missing_is_said(results, without):
    results[without] = [one for one in results[without] if one["allocator"] != "annex-offload-queue"]
    with pytest.raises(ladder.Incomplete, match="annex-offload-queue"):
        ladder.climb(results)


def test_without_a_support_thread_there_is_no_time_of_ones_own(results):
    for row in results["results"]:
        del row["support_cpu_s"]  # as in files of earlier versions
    samples = stats.Samples(results["results"])
    assert samples.ratio("program-1", "annex", "annex-offload", "own_cpu_s") is None
    assert samples.summary("program-1", "annex", "own_cpu_s") is None
