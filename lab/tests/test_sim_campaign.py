"""Campaigns of simulated runs: parts joined, results kept by content, jobs that fail."""

import json
import shutil
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path

import pytest
import simulator
from typer.testing import CliRunner

from annex_lab import cli
from annex_lab.sim import cache, campaign, run

simulated = simulator.needed
ROOT = Path(__file__).resolve().parents[2]
SNAKEFILE = ROOT / "lab/campaign/sim/Snakefile"


# --- joining --------------------------------------------------------------------------------------------------------


def part(workload: str, allocator: str, threads: int, cycles: int, seed: int = 1, **more) -> dict:
    """What annex-lab sim --json writes, as far as a campaign reads it."""
    return {
        "workload": workload,
        "command": [workload],
        "machine": {"name": f"speedmalloc-{threads}"},
        "requested_machine": "auto",
        "requested_threads": threads,
        "seed": seed,
        "scale": 0.01,
        "complete": True,
        "ended": "exit",
        "exit_status": 0,
        "cycles": cycles,
        "busy_cycles": 2 * cycles,
        "instructions": 3000000,
        "host_s": 1.5,
        "allocator": {
            "name": allocator,
            "calls": 10,
            "instructions": 100,
            "cycles": cycles // 2,
            "atomic_cycles": 5,
            "l2_miss_stalls": {"inside": cycles // 10, "evicted": cycles // 40, "touched": 0, "evicted_and_touched": 0},
            "l2_miss_cycles": {
                "inside": cycles // 5,
                "evicted": cycles // 20,
                "touched": cycles // 25,
                "evicted_and_touched": cycles // 100,
                "other": cycles // 10,
            },
        },
        "memory": {"pages": {"peak_resident": 3 << 20, "average_resident": 1 << 20}},
        **more,
    }


def failure(workload: str, allocator: str, threads: int, why: str = "what <it> said") -> dict:
    who = {"workload": workload, "allocator": allocator, "machine": "auto", "threads": threads, "seed": 1}
    return {"failure": {**who, "exit_status": 139, "why": why}}


@pytest.fixture
def report(tmp_path):
    """Runs annex-lab sim-report on parts; its exit status and output, the Markdown, the JSON."""

    def make(*parts: dict) -> tuple[int, str, str, dict]:
        folder = tmp_path / "parts"
        folder.mkdir()
        for number, one in enumerate(parts):
            (folder / f"{number:03}").mkdir(parents=True)
            (folder / f"{number:03}" / "part.json").write_text(json.dumps(one))
        out = tmp_path / "out"
        done = CliRunner().invoke(cli.app, ["sim-report", str(folder), "--report", str(out), "--made-by", "the test"])
        if not (out / "campaign.md").exists():
            return done.exit_code, done.output, "", {}
        text, data = (out / "campaign.md").read_text(), json.loads((out / "campaign.json").read_text())
        return done.exit_code, done.output, text, data

    return make


def test_tables_are_relative_to_glibc(report):
    status, _, text, data = report(
        part("a", "annex", 1, 500),
        part("a", "glibc", 1, 1000),
        part("b", "annex", 1, 2000),
        part("b", "glibc", 1, 1000),
        part("c", "annex", 1, 4000),
    )
    assert status == 0
    assert "## speedmalloc-1 (auto), 1 thread\n" in text and "`the test`" in text
    assert "| a | 0.500 | 1.000 |" in text and "| b | 2.000 | 1.000 |" in text
    assert "| c | - | - |" in text  # nothing to be relative to
    assert "| **geometric mean** | **1.000** of 2 | **1.000** of 2 |" in text
    assert "| a | 25.0 | 25.0 |" in text  # the allocator's share
    assert "| a | 10.0 + 5.0 | 10.0 + 5.0 |" in text  # of L2's misses
    assert "| a | 3.0 | 3.0 |" in text  # MiB
    assert len(data["runs"]) == 5 and data["runs"][0]["l2_miss_cycles_caused"] == 50 and not data["failures"]


def test_seeds_are_paired_and_their_spread_is_shown(report):
    _, _, text, data = report(
        part("a", "glibc", 1, 1000, seed=1),
        part("a", "glibc", 1, 2000, seed=2),
        part("a", "annex", 1, 800, seed=1),
        part("a", "annex", 1, 1600, seed=2),
        part("a", "mimalloc3", 1, 1000, seed=1),
        part("a", "mimalloc3", 1, 4000, seed=2),
    )
    assert "| a | 1.000 (0.0 %) | 0.800 (0.0 %) | 1.414 (70.7 %) |" in text
    assert "seeds 1, 2" in text and "how far the seeds are apart" in text
    assert {row["seed"] for row in data["runs"]} == {1, 2}


def test_seeds_are_over_layouts_where_each_part_says_so(report, tmp_path):
    parts = [part("a", "glibc", 1, 1000 * seed, seed=seed, layout=seed) for seed in (1, 2)]
    assert "how far the seeds, each with addresses of its own, are apart" in report(*parts)[2]
    shutil.rmtree(tmp_path / "parts")
    del parts[0]["layout"]  # of an older simulator
    assert "how far the seeds are apart" in report(*parts)[2]


def test_the_figures_points_are_of_the_same_workloads(report, tmp_path):
    """A workload that failed somewhere, or ran with one thread only, would make two points incomparable."""
    rows = [
        part(workload, allocator, threads, cycles)
        for workload in ("a", "b")
        for allocator, cycles in (("jemalloc", 3000), ("annex", 1500), ("$x_", 2000))
        for threads in (1, 4)
    ]
    alone = [part("single", name, 1, 99) for name in ("jemalloc", "annex", "$x_")]
    rows = [row for row in rows if (row["workload"], row["allocator"]["name"]) != ("b", "$x_")]
    status, output, text, data = report(*rows, *alone, failure("b", "$x_", 1), failure("b", "$x_", 4))
    assert status == 1 and "2 runs failed" in output
    (panel,) = data["figure"]
    assert panel["workloads"] == ["a"] and panel["left_out"] == ["b"] and panel["base"] == "jemalloc"
    assert panel["speedups"]["annex"]["4"]["mean"] == pytest.approx(2)
    assert panel["speedups"]["jemalloc"]["1"]["mean"] == 1
    assert "| 4 | 1.000 | 2.000 | 1.500 |" in text
    assert "- b under $x_, on auto, threads: 1, 4, seeds: 1 (2 runs): exit status 139, what <it> said" in text
    assert "| b | 1.000 | 0.500 | failed |" in text
    picture = (tmp_path / "out/campaign.svg").read_text()
    assert xml.etree.ElementTree.fromstring(picture).tag.endswith("svg")
    assert ">$x_<" in picture and 'href="http' not in picture


def test_machines_are_kept_apart(report):
    def on(machine: str, cycles: int, allocator: str) -> dict:
        return part("a", allocator, 2, cycles, machine={"name": machine}, requested_machine=machine)

    _, _, text, data = report(
        on("big", 100, "glibc"), on("big", 50, "annex"), on("small", 100, "glibc"), on("small", 300, "annex")
    )
    assert [panel["machine"] for panel in data["figure"]] == ["big", "small"]
    assert "## big, 2 threads" in text and "| a | 1.000 | 3.000 |" in text


def test_parts_of_several_simulators_are_told(report):
    _, output, text, data = report(
        part("a", "glibc", 1, 100, simulator="x", machine={"name": "one", "cores": 1}),
        part("a", "annex", 1, 100, simulator="y", machine={"name": "one", "cores": 2}),
    )
    assert data["mixed"] == "2 builds of the simulator made them; one had other parameters in some"
    assert f"**not all comparable: {data['mixed']}**" in text and data["mixed"] in output


def test_only_failures_are_a_report_too(report, tmp_path):
    status, _, text, data = report(failure("a", "glibc", 1))
    assert status == 1 and "## What failed" in text and data["figure"] == []
    assert not (tmp_path / "out/campaign.svg").exists()


def test_a_run_that_did_not_end_well_is_a_failure(report):
    _, _, _, data = report(
        part("a", "glibc", 1, 100, complete=False, ended="hang", exit_status=124),
        part("b", "glibc", 1, 9, exit_status=3),
    )
    assert [one["why"] for one in data["failures"]] == ["hang", "the program failed"]
    assert not data["runs"]


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([{"x": 1}], "no result of annex-lab sim"),
        ([[1]], "no result of annex-lab sim"),
        ([{"failure": {}}], "no result of annex-lab sim"),
        ([part("a", "glibc", 1, 1), part("a", "glibc", 1, 2)], "same workload"),
        ([part("a", "glibc", 1, 1), part("a", "annex", 1, 2, scale=0.5)], "different scales"),
        (
            [part("a", "glibc", 1, 1), part("a", "annex", 1, 2, workload_options=["--slots=9"])],
            "different sizes, its own and --slots=9",
        ),
        ([], "no parts there"),
    ],
)
def test_what_cannot_be_joined(report, parts, words):
    status, output, text, _ = report(*parts)
    assert status == 2 and words in " ".join(output.split()) and not text


def test_without_jemalloc_and_glibc_the_first_is_the_base():
    parts = [campaign._run(part("a", name, 1, 10)) for name in ("x", "y")]
    joined = campaign.Campaign(parts)
    assert joined.base(campaign.TABLE_BASE) == joined.base(campaign.FIGURE_BASE) == "x"


# --- the cache ------------------------------------------------------------------------------------------------------


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "FOLDER", tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def program(tmp_path):
    """A run of `wc FILE`; its text, its environment and its seed can be other ones."""
    text = tmp_path / "text"

    def make(content: str = "one", env: dict | None = None, seed: int = 1, machine: str = "speedmalloc-1") -> dict:
        text.write_text(content)
        guest = run.Guest(["/usr/bin/wc", str(text), f"--files0-from={text}"], env=env or {})
        return cache.ingredients(guest, ROOT / f"sim/presets/{machine}.toml", tmp_path / "scratch", 1, seed)

    return make


@simulated
def test_the_key_is_of_what_a_run_depends_on(program):
    first = program()
    assert cache.key(first) == cache.key(program())
    others = [program("two"), program(env={"A": "1"}), program(seed=2), program(machine="haswell-1")]
    assert len({cache.key(one) for one in [first, *others]}) == 5
    assert any("libc.so.6" in name for name in first["program"][1])


@simulated
def test_only_complete_results_are_kept(kept, tmp_path):
    guest = run.Guest(["/usr/bin/true"])
    machine = ROOT / "sim/presets/speedmalloc-1.toml"
    started, said = [], []

    def take(complete: bool) -> run.Simulated:
        def simulate() -> run.Simulated:
            started.append(complete)
            return run.Simulated({"complete": complete, "number": len(started)}, 0)

        return cache.simulated(guest, machine, tmp_path / "scratch", 1, 1, simulate, said.append)

    assert [take(False).results["number"], take(True).results["number"]] == [1, 2]
    assert take(True).results["number"] == 2 and len(started) == 2
    assert said[-1].startswith("of an earlier run")
    (file,) = kept.iterdir()
    assert json.loads(file.read_text())["ingredients"]["name"] == "/usr/bin/true"
    file.write_text("{")  # a broken file is as good as none
    assert take(True).results["number"] == 3


def test_folders_are_known_by_their_content(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/b").write_text("1")
    (tmp_path / "a/link").symlink_to("nowhere")
    before = cache._of_argument("a", tmp_path)
    assert before and cache._of_argument("-Ia", tmp_path) is None and cache._of_argument("none", tmp_path) is None
    assert cache._of_argument(f"-I{tmp_path}/a", Path("/")) == cache._of_argument("--in=a", tmp_path) == before
    (tmp_path / "a/b").write_text("2")
    assert cache._of_argument("a", tmp_path) != before
    assert cache._of_argument("x" * 5000, tmp_path) is None and cache._of_argument("", tmp_path) is None


def test_a_folder_of_too_many_files_has_no_key(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "MOST_FILES", 2)
    for name in "abc":
        (tmp_path / name).touch()
    with pytest.raises(cache.CannotCache):
        cache._of_argument(str(tmp_path), Path("/"))


# --- the jobs -------------------------------------------------------------------------------------------------------


@pytest.fixture
def snakemake(tmp_path):
    """Runs a small campaign with further settings; two runs at a time."""
    settings = {
        "workloads": "hashmap,larson",
        "allocators": "glibc",
        "threads": "1,2",
        "scale": "{others: 0.0005, larson: 0.0004}",
        "sizes": "{hashmap: --entries=750, larson: --slots=280}",
        "out": tmp_path / "out",
        "lab": Path(sys.executable).parent / "annex-lab",
    }

    def make(**more: str) -> subprocess.CompletedProcess:
        config = [f"{key}={value}" for key, value in {**settings, **more}.items()]
        command = [Path(sys.executable).parent / "snakemake", "-s", SNAKEFILE, "--cores", "2", "--config", *config]
        return subprocess.run(
            [*map(str, command), "--directory", str(tmp_path)], capture_output=True, text=True, timeout=300
        )

    return make


@simulated
def test_jobs_are_run_once_and_joined(snakemake, tmp_path):
    done = snakemake()
    assert done.returncode == 0, done.stderr
    data = json.loads((tmp_path / "out/campaign.json").read_text())
    # One thread allocates in hashmap, so it runs with one.
    assert [(row["workload"], row["threads"], row["simulated_machine"]) for row in data["runs"]] == [
        ("hashmap", 1, "speedmalloc-1"),
        ("larson", 1, "speedmalloc-1"),
        ("larson", 2, "speedmalloc-2"),
    ]
    assert [row["scale"] for row in data["runs"]] == [0.0005, 0.0004, 0.0004]
    assert [row["options"] for row in data["runs"]] == [["--entries=750"], ["--slots=280"], ["--slots=280"]]
    assert not data["failures"] and data["made_by"].startswith("snakemake -s lab/campaign/sim/Snakefile")
    assert (tmp_path / "out/campaign.svg").exists()

    lost = tmp_path / "out/parts/hashmap/glibc/auto/1t-seed1.json"
    stays = tmp_path / "out/parts/larson/glibc/auto/2t-seed1.json"
    before, when = json.loads(lost.read_text()), stays.stat().st_mtime_ns
    lost.unlink()
    (tmp_path / "out/campaign.md").unlink()
    again = snakemake()
    assert again.returncode == 0, again.stderr
    assert stays.stat().st_mtime_ns == when
    assert json.loads(lost.read_text()) == before  # from build/sim/cache, as host_s shows
    assert "of an earlier run" in lost.with_suffix(".log").read_text()


@simulated
def test_a_job_that_fails_is_in_the_report_and_the_rest_goes_on(snakemake, tmp_path):
    done = snakemake(workloads="nonesuch,hashmap", threads="1")
    assert done.returncode == 0, done.stderr
    data = json.loads((tmp_path / "out/campaign.json").read_text())
    assert [row["workload"] for row in data["runs"]] == ["hashmap"]
    (failed,) = data["failures"]
    assert (failed["workload"], failed["allocator"], failed["exit_status"]) == ("nonesuch", "glibc", 2)
    assert "no program is called nonesuch" in failed["why"]
    assert "no program is called nonesuch" in (tmp_path / "out/campaign.md").read_text()
