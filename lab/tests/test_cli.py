"""The command line."""

import json

from typer.testing import CliRunner

from annex_lab import cli, document

run = CliRunner().invoke


def test_the_command_in_a_report_names_no_paths():
    given = [
        "bench",
        "--json",
        "/a/b.json",
        "--markdown=/c.md",
        "--allocators",
        "old=/x/y/liba.so,glibc",
        "--rounds",
        "3",
    ]
    assert document.without_paths(given) == "annex-lab bench --allocators old=liba.so,glibc --rounds 3"


def test_unknown_programs_and_allocators_are_refused():
    assert "no program is called nonesuch" in run(cli.app, ["bench", "--workloads", "nonesuch"]).output.replace(
        "\n", " "
    )
    result = run(cli.app, ["bench", "--workloads", "ls", "--allocators", "nonesuch"])
    assert result.exit_code == 2 and "nonesuch" in result.output


def test_a_small_comparison_from_end_to_end(tmp_path):
    json_file, markdown_file = tmp_path / "r.json", tmp_path / "r.md"
    arguments = [
        "bench",
        "--workloads",
        "ls",
        "--allocators",
        "glibc",
        "--rounds",
        "2",
        "--retries",
        "0",
        "--patience",
        "0",
    ]
    result = run(cli.app, [*arguments, "--json", str(json_file), "--markdown", str(markdown_file)])
    assert result.exit_code == 0, result.output
    assert json_file.read_text().count('"workload": "ls"') == 2
    assert "| ls |" in markdown_file.read_text()


QUICK = ["bench", "--allocators", "glibc", "--rounds", "1", "--retries", "0", "--patience", "0"]


def test_a_command_of_ones_own_runs_where_one_stands(tmp_path, monkeypatch):
    (tmp_path / "input").write_text("some words\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SECRET", "kept")
    script = "cat; pwd > where; echo $SECRET >> where"
    result = run(cli.app, [*QUICK, "--stdin", "input", "--json", "r.json", "--", "sh", "-c", script])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "where").read_text() == f"{tmp_path}\nkept\n"
    assert '"workload": "sh"' in (tmp_path / "r.json").read_text()
    assert "varies" not in result.output


def test_output_that_varies_is_not_compared_and_said_so():
    result = run(cli.app, [*QUICK, "--", "date", "+%N"])
    assert result.exit_code == 0 and "varies from run to run" in result.output


def test_bad_commands_of_ones_own():
    result = run(cli.app, [*QUICK, "--", "/no/such/program"])
    assert result.exit_code == 127 and "/no/such/program: no such program" in result.output
    result = run(cli.app, [*QUICK, "--", "sh", "-c", "exit 3"])
    assert result.exit_code == 1 and "exited with 3" in result.output
    result = run(cli.app, [*QUICK, "--limit", "1", "--", "sleep", "30"])
    assert result.exit_code == 1 and "ran longer than 1 s" in result.output
    assert run(cli.app, [*QUICK, "--workloads", "ls", "--", "ls"]).exit_code == 2


def test_programs_run_once_with_each_number_of_threads(tmp_path):
    json_file = tmp_path / "r.json"
    result = run(
        cli.app,
        [*QUICK, "--workloads", "larson,ls", "--threads", "1,3", "--scale", "0.01", "--json", str(json_file)],
    )
    assert result.exit_code == 0, result.output
    results = json.loads(json_file.read_text())["results"]
    assert [(r["workload"], r["threads"]) for r in results] == [("larson/1", 1), ("larson/3", 3), ("ls", 1)]


def test_wrong_numbers_of_threads():
    for wrong in ("0", "two", "1,,x", "-1", ""):
        result = run(cli.app, [*QUICK, "--workloads", "ls", "--threads", wrong])
        assert result.exit_code == 2 and "numbers from 1 up" in " ".join(result.output.split())


def test_a_report_and_the_same_again_from_its_results(tmp_path):
    folder = tmp_path / "report"
    result = run(cli.app, [*QUICK, "--workloads", "ls", "--report", str(folder)])
    assert result.exit_code == 0, result.output
    assert {path.name for path in folder.iterdir()} == {"index.html", "results.json", "results.md"}
    again = tmp_path / "again.md"
    result = run(cli.app, ["report", str(folder / "results.json"), "--markdown", str(again)])
    assert result.exit_code == 0 and again.read_text() == (folder / "results.md").read_text()
    bad = run(cli.app, ["report", str(again)])
    assert bad.exit_code == 2 and "not JSON" in bad.output
    for name, why in (("curves.bmp", "ends with .svg or .png"), ("curves.svg", "three numbers of threads")):
        result = run(cli.app, ["report", str(folder / "results.json"), "--scaling", str(tmp_path / name)])
        assert result.exit_code == 2 and why in " ".join(result.output.replace("│", " ").split())
        assert not (tmp_path / name).exists()


def test_merging_needs_somewhere_to_write(tmp_path):
    json_file = tmp_path / "r.json"
    assert run(cli.app, [*QUICK, "--workloads", "ls", "--json", str(json_file)]).exit_code == 0
    assert run(cli.app, ["merge", str(json_file)]).exit_code == 2
    whole = tmp_path / "whole.json"
    assert run(cli.app, ["merge", str(json_file), "--json", str(whole), "--made-by", "us"]).exit_code == 0
    assert json.loads(whole.read_text())["options"]["command"] == "us"


def test_an_allocator_that_is_not_there_is_said_and_the_rest_goes_on(tmp_path):
    json_file = tmp_path / "r.json"
    given = [*QUICK, "--workloads", "ls", "--json", str(json_file), "--allocators", "glibc,mine=/no/such/lib.so"]
    result = run(cli.app, given)
    assert result.exit_code == 1 and "there is no library" in result.output
    results = json.loads(json_file.read_text())
    assert len(results["results"]) == 1 and results["absent"][0]["allocator"] == "mine=/no/such/lib.so"


def test_wrong_cpus():
    for wrong in ("9999", "one", "-1"):
        result = run(cli.app, [*QUICK, "--workloads", "ls", "--cpus", wrong])
        assert result.exit_code == 2 and "numbers of CPUs" in " ".join(result.output.split())


def test_calls_timed_and_instructions_counted(tmp_path):
    json_file = tmp_path / "r.json"
    given = ["--workloads", "glibc-simple", "--scale", "0.002", "--count", "--latency", "--json", str(json_file)]
    result = run(cli.app, [*QUICK, *given])
    assert result.exit_code == 0, result.output
    results = json.loads(json_file.read_text())
    (counted,) = results["counts"]
    assert counted["instructions"] > 1_000_000
    assert {row["call"] for row in results["latencies"]} == {"malloc", "free"}


def test_names_for_scripts():
    names = run(cli.app, ["list", "--names", "--suite", "single"]).output.split()
    assert "ls" in names and "larson" not in names
