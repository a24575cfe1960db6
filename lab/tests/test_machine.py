"""Every table of results names the CPU, and two makers' CPUs are not compared without a word."""

import io

import pytest
import synthetic
from conftest import document_of
from rich.console import Console
from typer.testing import CliRunner

import annex_lab.html
from annex_lab import cli, document, ladder, machine, show
from annex_lab.give_back import cli as give_back_cli
from annex_lab.give_back import page, results
from annex_lab.html import page as html_page
from annex_lab.report import Report

CPU = "Imagined"  # synthetic.py's


@pytest.mark.parametrize(
    ("cpu", "maker"),
    [
        ("Intel(R) Xeon(R) Platinum 8488C", "Intel"),
        ("AMD EPYC 7B13", "AMD"),
        ("AMD Ryzen 9 7950X 16-Core Processor", "AMD"),
        ("Neoverse-N1", "ARM"),
        ("ARMv8 Processor rev 1 (v8l)", "ARM"),
        ("Hygon C86 7285 32-core Processor", "Hygon"),
        ("Common KVM processor", None),
        ("unknown", None),
        ("a charming chip", None),
    ],
)
def test_a_models_name_tells_its_maker(cpu, maker):
    assert machine.maker(cpu) == maker


def test_the_terminal_the_markdown_and_the_page_name_the_cpu():
    made = synthetic.document(["annex", "glibc"], 2, 3)
    text = io.StringIO()
    show.tables(Console(file=text, width=130), Report(made))
    assert text.getvalue().splitlines()[0].startswith(f"{CPU}, 4 CPUs, 16 GiB, ")
    assert f"- machine: {CPU}, 4 CPUs" in Report(made).as_markdown()
    assert f"<dd>{CPU}, 4 CPUs" in html_page.render(made)


def test_a_picture_of_scaling_names_the_cpu(tmp_path):
    made = synthetic.document(["annex", "glibc"], 2, 3, extras=False)
    once = [row for row in made["results"] if row["workload"] == "program-1"]
    made["results"] = [{**row, "workload": f"w/{n}", "threads": n} for n in (1, 2, 4) for row in once]
    made["programs"] = {f"w/{n}": made["programs"]["program-1"] for n in (1, 2, 4)}
    assert annex_lab.html.draw_scaling(made, tmp_path / "s.svg")
    assert f">{CPU}, 4 CPUs<" in (tmp_path / "s.svg").read_text()


def test_the_ladder_and_the_break_even_name_the_cpu(tmp_path):
    made = synthetic.document(list(ladder.LADDER), 1, 3)
    assert f"Machine: {CPU}, 4 CPUs" in ladder.as_markdown(made, [])
    document.save(made, tmp_path / "r.json")
    given = ["--offload", "annex-offload-queue", "--yardstick", "annex"]
    result = CliRunner().invoke(cli.app, ["break-even", str(tmp_path / "r.json"), *given])
    assert result.exit_code == 0 and f"on {CPU};" in " ".join(result.output.split())


def test_give_backs_tables_and_page_name_the_cpu(tmp_path, capsys):
    options = {"rounds": 1, "scale": 1.0, "idle_s": 1.0, "command": "annex-lab give-back"}
    made = results.begun("table", [], [], options)
    made["machine"]["cpu"] = CPU
    give_back_cli._report(made, None, None, None)
    assert f"{CPU}, " in capsys.readouterr().out
    to = tmp_path / "give-back.md"
    results.save(made, page.data_file(to, "table"))
    assert f"Measured on {CPU}, " in page.render(to)


def compared(folder, first: str, second: str, *more: str) -> str:
    for name, cpu in (("a", first), ("b", second)):
        made = document_of({("x", allocator): [(1.0, 1000)] * 3 for allocator in ("annex", "glibc")})
        document.save({**made, "machine": {**made["machine"], "cpu": cpu}}, folder / f"{name}.json")
    result = CliRunner().invoke(cli.app, ["compare", str(folder / "a.json"), str(folder / "b.json"), *more])
    assert result.exit_code == 0, result.output
    return result.output


def test_two_runs_beside_each_other_name_both_cpus(tmp_path):
    output = compared(tmp_path, "AMD EPYC 7B13", "AMD EPYC 9B14")
    assert output.splitlines()[0] == "A: a.json, AMD EPYC 7B13; B: b.json, AMD EPYC 9B14"
    assert "Warning" not in output


@pytest.mark.parametrize("more", [(), ("--agree", "4")])
def test_two_makers_cpus_are_warned_of_in_one_line(tmp_path, more):
    output = compared(tmp_path, "AMD EPYC 7B13", "Intel(R) Xeon(R) Platinum 8488C", *more)
    (warning,) = [line for line in output.splitlines() if "Warning" in line]
    assert "A is of AMD's CPU, B of Intel's" in warning and "0.76" in warning and "1.28" in warning


def test_a_cpu_of_an_unknown_maker_is_not_judged(tmp_path):
    assert "Warning" not in compared(tmp_path, "AMD EPYC 7B13", "Common KVM processor")
