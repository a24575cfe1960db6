"""What changed between two result files."""

import pytest
from conftest import document_of
from typer.testing import CliRunner

from annex_lab import cli, compare, document

NOISE = [0.97, 1.0, 1.03, 0.99, 1.01]


def write(path, seconds: dict[tuple[str, str], float], peak_kib=1000, annex="build 1", glibc="2.36"):
    """A result file: (workload, allocator) -> CPU seconds, with some noise over five rounds."""
    figures = {key: [(s * noise, peak_kib) for noise in NOISE] for key, s in seconds.items()}
    document.save(document_of(figures, versions={"annex": annex, "glibc": glibc}), path)
    return path


@pytest.fixture
def files(tmp_path):
    before = {("x", "annex"): 1.0, ("x", "glibc"): 2.0, ("y", "annex"): 1.0, ("y", "glibc"): 1.0}
    # The machine runs at half its speed now; Annex has become twice as fast on x and stayed as it was on y.
    after = {("x", "annex"): 1.0, ("x", "glibc"): 4.0, ("y", "annex"): 2.0, ("y", "glibc"): 2.0, ("z", "annex"): 1.0}
    return write(tmp_path / "a.json", before), write(tmp_path / "b.json", after, peak_kib=1500, annex="build 2")


def test_times_are_relative_to_what_did_not_change(files):
    a, b = map(compare.load, files)
    assert compare.subjects(a, b) == ["annex"]
    x, y, mean = compare.changes(a, b, "annex", "cpu_s")
    assert (x.workload, x.ratio) == ("x", pytest.approx(0.5)) and x.clear
    assert (y.workload, y.ratio) == ("y", pytest.approx(1.0)) and not y.clear
    assert mean.ratio == pytest.approx(0.5**0.5) and mean.clear  # the same noise in both: none is left
    assert [one.ratio for one in compare.changes(a, b, "annex", "peak_rss_kib")] == pytest.approx([1.5] * 3)


def test_another_version_is_no_yardstick(files, tmp_path):
    a = compare.load(files[0])
    b = compare.load(write(tmp_path / "c.json", {("x", "annex"): 3.0, ("x", "glibc"): 9.0}, glibc="2.41"))
    assert compare.yardsticks(a, b, "annex") == []
    assert compare.changes(a, b, "annex", "cpu_s")[0].ratio == pytest.approx(3.0)


def test_the_command(files, tmp_path):
    run = CliRunner().invoke
    result = run(cli.app, ["compare", *map(str, files)])
    assert result.exit_code == 0, result.output
    assert "build 1" in result.output and "relative to glibc" in result.output and "0.50" in result.output
    bad = tmp_path / "bad.json"
    bad.write_text("[]")
    for arguments, what in [
        ([str(files[0]), str(bad)], "not a result file"),
        ([str(files[0]), str(tmp_path / "none.json")], "No such file"),
        ([*map(str, files), "--allocator", "nonesuch"], "not in both"),
    ]:
        result = run(cli.app, ["compare", *arguments])
        assert result.exit_code == 2 and what in " ".join(result.output.split())


def test_two_runs_agree_or_do_not(files):
    a, b = files
    run = CliRunner().invoke
    same = run(cli.app, ["compare", str(a), str(a), "--agree", "0"])
    assert same.exit_code == 0 and "0 of" in same.output
    apart = run(cli.app, ["compare", str(a), str(b), "--agree", "4"])
    assert apart.exit_code == 1
    worst = compare.disagreements(*map(compare.load, files))[0]
    assert {worst.allocator, worst.against} == {"annex", "glibc"} and abs(worst.change) > 0.4


def test_how_far_two_runs_agree_is_a_table_by_group_and_metric():
    changes = {("all", "cpu_s"): (1.0, 1.05, 0.99), ("all", "score"): (1.0,), ("single", "cpu_s"): (0.9,)}
    apart = [
        compare.Disagreement(group, "annex", "glibc", metric, 1.0, second)
        for (group, metric), seconds in changes.items()
        for second in seconds
    ]
    assert compare.agreement(apart, 4).splitlines()[2:] == [
        "| all | 1.0 %, 5.0 %, 1 of 3 | 0.0 %, 0.0 %, 0 of 1 |",
        "| single | 10.0 %, 10.0 %, 1 of 1 | - |",
    ]
