"""What is given back: the programs, the tables, the day's curves, the page."""

import copy
import json
import subprocess
import xml.etree.ElementTree
from pathlib import Path

import pytest
from typer.testing import CliRunner

from annex_lab import allocators as known
from annex_lab import cli, paths
from annex_lab.allocators import Allocator
from annex_lab.give_back import bursts, day, page, results, runs, table
from annex_lab.sample import RunFailed

GLIBC = Allocator("glibc", None, "2.36")
PAGE = paths.ROOT / "docs/give-back.md"

# glibc under names of its own, so that it is what serves malloc. With -DSPOILS it writes into the
# block that the same thread took before, where that is still in use.
STUB = r"""
#define _GNU_SOURCE
#include <stddef.h>
#include <stdlib.h>

void* __libc_malloc(size_t size);
void __libc_free(void* block);
void* __libc_realloc(void* block, size_t size);
void* __libc_calloc(size_t count, size_t size);

static __thread char* last __attribute__((tls_model("initial-exec")));
static __thread int calls __attribute__((tls_model("initial-exec")));

void* malloc(size_t size) {
#ifdef SPOILS
  if (last != NULL && ++calls > 20) *last ^= 1;
#endif
  return last = __libc_malloc(size);
}
void free(void* block) {
  if (block == last) last = NULL;
  __libc_free(block);
}
void* realloc(void* block, size_t size) {
  if (block == last) last = NULL;
  return __libc_realloc(block, size);
}
void* calloc(size_t count, size_t size) { return __libc_calloc(count, size); }
"""


def compiled_stub(folder: Path, *more: str) -> Path:
    (folder / "stub.c").write_text(STUB)
    library = folder / "stub.so"
    command = ["cc", "-O1", "-fno-builtin", "-shared", "-fPIC", *more, str(folder / "stub.c"), "-o", str(library)]
    subprocess.run(command, check=True)
    return library


@pytest.fixture(scope="module")
def stub(tmp_path_factory) -> Path:
    return compiled_stub(tmp_path_factory.mktemp("stub"))


@pytest.fixture(scope="module")
def spoiling(tmp_path_factory) -> Path:
    return compiled_stub(tmp_path_factory.mktemp("spoiling"), "-DSPOILS")


def invoke(*arguments: object):
    return CliRunner().invoke(cli.app, ["give-back", *map(str, arguments)])


QUICK = ("--rounds", 2, "--scale", 0.005, "--idle", 0.05)
QUICK_DAY = ("--day", "--rounds", 2, "--scale", 0.02, "--seconds", 0.5, "--threads", 3)


@pytest.mark.parametrize("mode", table.MODES.values())
def test_each_mode_says_what_its_rows_show(mode, stub):
    program = runs.compiled("give_back")
    said = runs.run(program, (mode, 0.005, 0.05), Allocator("stub", stub, ""), 60)
    wanted = {row.value for row in table.ROWS if row.mode == mode}
    wanted |= {value for of, value, _ in table.GIVING_BACK if of == mode}
    wanted |= {value for value, _ in table.COSTS} if mode in table.IDLE_MODES else set()
    assert wanted <= set(said.values)
    assert said.values["start_mib"] <= said.values["full_mib"]
    assert said.values.get("helper_threads", 0) == 0
    assert said.words["given_back_by"] == "nothing"  # the stub has no malloc_trim, and glibc's is another's
    assert said.cpu_s > 0 and said.minor_faults > 0 and said.foreign_cpu_s >= 0


def test_blocks_that_hold_something_else_are_an_error(spoiling):
    for program, arguments in (
        ("give_back", ("threads-asleep", 0.02, 0.05)),
        ("server_day", (0.5, 2, 1, 1)),
        ("bursts", (0.1, 1, 1)),
    ):
        with pytest.raises(RunFailed, match=r"exited with 1: .*does not hold what was written"):
            runs.run(runs.compiled(program), arguments, Allocator("stub", spoiling, ""), 60)


def test_a_figure_does_not_go_under_another_allocators_name(tmp_path):
    nothing = tmp_path / "nothing.so"
    subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", str(nothing)], check=True)
    with pytest.raises(RunFailed, match=r"malloc is served by libc\.so\.6"):
        runs.run(runs.compiled("give_back"), ("spans", 0.005), Allocator("nothing", nothing, ""), 60)


def test_a_program_that_does_not_end_is_ended(tmp_path):
    with pytest.raises(RunFailed, match=r"longer than 0\.2 s"):
        runs.run(runs.compiled("give_back"), ("holes-one-thread", 0.001, 60), GLIBC, 0.2)
    crash = tmp_path / "crash"
    crash.write_text("#!/bin/sh\nkill -SEGV $$\n")
    crash.chmod(0o755)
    with pytest.raises(RunFailed, match="ended by SIGSEGV"):
        runs.run(crash, (), GLIBC, 60)


def test_lines_that_mean_nothing_are_refused():
    said = runs.parse("served /a folder/x.so\nfull_mib 1.5\nin_use_kib 1 2\nchecksum 18446744073709551615\n")
    assert said.words == {"served": "/a folder/x.so", "checksum": "18446744073709551615"}
    assert (said.values, said.series) == ({"full_mib": 1.5}, {"in_use_kib": [1.0, 2.0]})
    with pytest.raises(RunFailed, match="means nothing: full_mib much"):
        runs.parse("full_mib much\n")


def test_the_same_seed_is_the_same_work(stub):
    program = runs.compiled("server_day")
    done = [
        runs.run(program, (0.5, 3, seed, 0.02), allocator, 60, sampled=True)
        for seed, allocator in ((1, GLIBC), (1, Allocator("stub", stub, "")), (2, GLIBC))
    ]
    asked = [
        (said.words["checksum"], *(said.values[name] for name in ("requests", "sessions", "threads", "allocated_mib")))
        for said in done
    ]
    assert asked[0] == asked[1] != asked[2]
    assert done[0].resident and done[0].series["in_use_kib"]
    assert 0 < done[0].values["work_p50_us"] <= done[0].values["work_p99_us"] <= done[0].values["work_p9999_us"]


def test_curves_and_their_area():
    seen = [(0.0, 1024), (1.0, 3072), (2.0, 3072)]
    assert day.area_mib_s(seen) == pytest.approx(5)
    curve = day.curve_kib(seen, 2.0)
    assert len(curve) == day.POINTS and curve[0] == 1024 and curve[day.POINTS // 2] == 3072
    low, high = [100.0] * day.POINTS, [900.0] * day.POINTS
    assert day.top_mib({"a": low, "b": low, "c": high}) == pytest.approx(
        105
    )  # one far above leaves room for the others
    assert day.top_mib({"c": high}) == pytest.approx(945)
    said = runs.Said(resident=seen)
    assert day.values_of(said, 2.0)["end_mib"] == 3
    with pytest.raises(RunFailed, match="before its resident set could be read"):
        day.values_of(runs.Said(), 2.0)


def test_the_values_of_a_server_with_bursts(stub):
    assert [bursts.bursts_in(period_s) for period_s in (0.1, 1, 10, 60, 3600)] == [20, 20, 6, 2, 2]
    program = runs.compiled("bursts")
    done = [
        runs.run(program, (0.2, 3, 2, seed, 0.05), allocator, 60, sampled=True)
        for seed, allocator in ((1, GLIBC), (1, Allocator("stub", stub, "")), (2, GLIBC))
    ]
    assert done[0].words["checksum"] == done[1].words["checksum"] != done[2].words["checksum"]
    said = runs.Said(
        values={"request_p50_us": 7.0, "burst_p50_us": 2500.0},
        cpu_s=0.8,
        minor_faults=400,
        resident=[(0.0, 1024), (1.0, 3072), (2.0, 3072)],
    )
    values = bursts.values_of(said, 10, 3)
    assert (values["mean_mib"], values["burst_p50_ms"], values["request_p50_us"]) == (2.5, 2.5, 7)
    assert (values["cpu_ms"], values["cpu_day_s"], values["faults"]) == (200, 1728, 100)
    with pytest.raises(RunFailed, match="before its resident set could be read"):
        bursts.values_of(runs.Said(), 1, 1)


def test_from_end_to_end(stub, tmp_path):
    """Both commands, to one page: the data beside it, the picture, and the same page again of the data alone."""
    made, json_file = tmp_path / "docs/page.md", tmp_path / "table.json"
    given = ("--allocators", f"glibc,mine={stub}", "--page", made)
    done = invoke(*QUICK, "--rows", "a,b,e", *given, "--json", json_file)
    assert done.exit_code == 0, done.output
    assert "CPUs" in done.output and "glibc: " in done.output and "Linux" in done.output
    document = results.load(json_file, "table")
    order = [(row["round"], row["mode"], row["allocator"]) for row in document["results"]]
    assert order[:4] == [
        (0, "holes-trimmed", "glibc"),
        (0, "holes-trimmed", "mine"),
        (0, "holes-one-thread", "glibc"),
        (0, "holes-one-thread", "mine"),
    ]
    assert order[6] == (1, "holes-trimmed", "mine") and len(order) == 12  # the second round begins with another
    assert document["machine"]["kernel"] and document["allocators"]["mine"]["version"].startswith("file ")
    assert str(tmp_path) not in document["options"]["command"] and str(stub.parent) not in json_file.read_text()
    assert "## Resident, MiB" in made.read_text() and made.read_text().count("Nothing has been measured yet.") == 2

    done = invoke(*QUICK_DAY, *given)
    assert done.exit_code == 0, done.output
    picture = tmp_path / "docs" / page.PICTURE
    assert xml.etree.ElementTree.parse(picture).getroot().tag.endswith("svg")
    done = invoke("--bursts", "--periods", "0.2,0.4", "--rounds", 1, "--scale", 0.05, "--threads", 2, *given)
    assert done.exit_code == 0, done.output
    text = made.read_text()
    assert "| each 0.2 s: mine | " in text and "| each 0.4 s: glibc | " in text
    assert "Nothing has been measured yet." not in text and "| mine |" in text and f"]({page.PICTURE})" in text
    picture.unlink()
    made.unlink()
    assert invoke("--only-page", "--page", made).exit_code == 0
    assert made.read_text() == text and picture.exists()


def test_a_picture_and_values_without_a_page(tmp_path):
    picture, json_file = tmp_path / "day.png", tmp_path / "day.json"
    done = invoke(*QUICK_DAY, "--allocators", "glibc", "--picture", picture, "--json", json_file)
    assert done.exit_code == 0, done.output
    assert picture.read_bytes().startswith(b"\x89PNG")
    document = results.load(json_file, "day")
    assert [len(row["curve_kib"]) for row in document["results"]] == [day.POINTS] * 2
    assert document["in_use_kib"] and json.loads(json_file.read_text()) == document


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--allocators", "nonesuch"), "no allocator is called nonesuch"),
        (("--rows", "a,z"), "no row is called z: a, b, c, d, e, f, g"),
        (("--day", "--rows", "a"), "--rows is for the table"),
        (("--day", "--bursts"), "--day and --bursts are two things"),
        (("--day", "--periods", "1"), "--periods is for --bursts"),
        (("--bursts", "--periods", "1,soon"), "--periods 1,soon: seconds, such as 1,10,60"),
        (("--bursts", "--periods", "0"), "--periods 0: each is from 0.1 to 3600 s"),
        (("--only-page",), "--only-page needs --page"),
        (("--picture", "day.svg"), "--picture is for --day"),
        (("--day", "--picture", "day.bmp"), "day.bmp: a picture's name ends with .svg or .png"),
        (("--allocators", "glibc=/bin/true,glibc"), "two allocators have the same name"),
    ],
)
def test_wrong_usage_is_one_line(arguments, why):
    done = invoke(*arguments)
    assert done.exit_code == 2
    assert why in done.output and len(done.output.splitlines()) == 1


def test_data_of_something_else_is_refused(tmp_path):
    made = tmp_path / "page.md"
    file = page.data_file(made, "table")
    file.parent.mkdir(parents=True)
    for text, why in (("{", "not JSON"), ('{"format": 2, "results": []}', "not a result file of annex-lab give-back")):
        file.write_text(text)
        done = invoke("--only-page", "--page", made)
        assert done.exit_code == 2 and why in done.output and len(done.output.splitlines()) == 1
        assert not made.exists()


def test_peers_that_are_not_there_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "PEERS", tmp_path / "peers")
    monkeypatch.setattr(paths, "RELEASE", tmp_path / "release")
    json_file = tmp_path / "r.json"
    done = invoke(*QUICK, "--rows", "a", "--json", json_file)
    assert done.exit_code == 0, done.output  # what is there was measured, and none of the others was asked for by name
    assert "left out: mimalloc3: mimalloc3 is not built: run peers/build mimalloc3" in done.output
    assert "left out: jemalloc-background: jemalloc is not built" in done.output
    document = results.load(json_file, "table")
    assert list(document["allocators"]) == ["glibc"]
    assert {one["allocator"] for one in document["absent"]} == set(runs.DEFAULT) - {"glibc"}
    done = invoke(*QUICK, "--rows", "a", "--allocators", "glibc,snmalloc")
    assert done.exit_code == 1 and "left out: snmalloc" in done.output
    done = invoke(*QUICK, "--rows", "a", "--allocators", "snmalloc")
    assert done.exit_code == 2 and "no allocator is left to measure" in done.output


def test_an_allocator_that_fails_is_said_and_the_rest_goes_on(spoiling, tmp_path):
    made = tmp_path / "page.md"
    given = ("--rows", "e", "--scale", 0.02, "--idle", 0.05, "--rounds", 1)
    done = invoke(*given, "--allocators", f"glibc,bad={spoiling}", "--page", made)
    assert done.exit_code == 1
    assert "failed: bad in threads-asleep, round 1: exited with 1: give_back: a block does not hold" in done.output
    text = made.read_text()
    assert "bad failed in threads-asleep, round 1" in text
    (row,) = [line for line in text.splitlines() if line.startswith("| e: then")]
    assert row.endswith("| - |")


def test_other_work_than_before_counts_as_failed(monkeypatch):
    sums = iter(("1", "2"))

    def run(*_arguments, **_more):
        return runs.Said(words={"checksum": next(sums)}, resident=[(0.1, 1024)])

    monkeypatch.setattr(runs, "run", run)
    options = {"rounds": 1, "scale": 1, "day_s": 1, "threads": 1, "seed": 1}
    document = results.begun("day", [GLIBC, Allocator("other", None, "")], [], options)
    assert list(day.measure(document, [GLIBC, Allocator("other", None, "")])) == ["glibc", "other"]
    assert [row["allocator"] for row in document["results"]] == ["glibc"]
    assert [failure["why"] for failure in document["failures"]] == ["did other work than the run before"]


def test_after_an_interruption_what_is_done_is_reported(tmp_path, monkeypatch):
    real, calls = runs.run, []

    def run(*arguments, **more):
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments, **more)

    monkeypatch.setattr(runs, "run", run)
    json_file = tmp_path / "r.json"
    done = invoke(*QUICK, "--rows", "a", "--allocators", "glibc", "--json", json_file)
    assert done.exit_code == 130
    document = results.load(json_file, "table")
    assert document["interrupted"] and len(document["results"]) == 1


def test_jemalloc_has_its_thread(monkeypatch, stub):
    base = Allocator("jemalloc", stub, "5", {"MALLOC_CONF": "narenas:1"})
    monkeypatch.setattr(known, "find", lambda name: base)
    found = runs.find(runs.JEMALLOC_BACKGROUND)
    assert (found.name, found.library) == (runs.JEMALLOC_BACKGROUND, stub)
    assert found.env == {"MALLOC_CONF": "narenas:1,background_thread:true"}
    assert base.env == {"MALLOC_CONF": "narenas:1"}


def test_annex_that_never_purges(monkeypatch, stub):
    monkeypatch.setattr(known, "find", lambda name: Allocator("annex", stub, "0"))
    assert runs.find(runs.NEVER_PURGING).env == {"ANNEX_PURGE_DELAY": "-1"}


def test_cells():
    content = {
        "results": [
            {"allocator": "glibc", "round": round_, "mode": "m", "values": {"idle_mib": mib, "purge_switches": count}}
            for round_, (mib, count) in enumerate(((80.0, 0), (100.0, 2), (120.0, 2)))
        ]
    }
    assert results.cell(content, "glibc", "idle_mib", "m") == "100 (40 %)"
    assert results.cell(content, "glibc", "purge_switches", "m", as_range=True) == "2 (0 to 2)"
    assert results.cell(content, "glibc", "idle_mib", "another") == "-"
    one = copy.deepcopy(content)
    one["results"] = one["results"][:1]
    assert results.cell(one, "glibc", "idle_mib", "m") == "80.0"
    assert [results.number(value, False) for value in (0.001, 1.5, 12.34, 1234.5)] == ["0", "1.50", "12.3", "1,234"]


def test_the_page_says_what_its_data_says():
    assert PAGE.read_text() == page.render(PAGE)
