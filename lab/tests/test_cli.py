"""The command line."""

from typer.testing import CliRunner

from annex_lab import cli

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
    assert cli.without_paths(given) == "annex-lab bench --allocators old=liba.so,glibc --rounds 3"


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
