"""The campaign: each program a job, kept when done, all joined at the end."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SNAKEMAKE = [str(Path(sys.executable).parent / "snakemake"), "-s", str(ROOT / "lab/campaign/Snakefile"), "--cores", "1"]


@pytest.fixture
def campaign(tmp_path):
    """Runs a small campaign with further arguments."""
    settings = {
        "programs": "ls,git-version",
        "allocators": "glibc",
        "rounds": 1,
        "options": "--retries 0 --patience 0",
        "out": tmp_path / "out",
        "lab": Path(sys.executable).parent / "annex-lab",
    }
    config = [f"{key}={value}" for key, value in settings.items()]

    def run(*more: str) -> subprocess.CompletedProcess:
        command = [*SNAKEMAKE, "--directory", str(tmp_path), "--config", *config, *more]
        return subprocess.run(command, capture_output=True, text=True, timeout=180)

    return run


def test_parts_are_made_once_and_joined(campaign, tmp_path):
    done = campaign()
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "out/results.json").read_text())
    assert [row["workload"] for row in results["results"]] == ["ls", "git-version"]
    assert results["options"]["command"].startswith("snakemake")
    assert "<html" in (tmp_path / "out/index.html").read_text() and "| ls" in (tmp_path / "out/results.md").read_text()

    for lost in ("parts/ls.json", "index.html", "results.json", "results.md"):
        (tmp_path / "out" / lost).unlink()
    kept = (tmp_path / "out/parts/git-version.json").stat().st_mtime_ns
    again = campaign()
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "out/parts/ls.json").exists() and (tmp_path / "out/index.html").exists()
    assert (tmp_path / "out/parts/git-version.json").stat().st_mtime_ns == kept


def test_a_part_that_cannot_be_measured_stops_it(campaign, tmp_path):
    done = campaign("allocators=nonesuch")
    assert done.returncode != 0 and not (tmp_path / "out/results.json").exists()
    logs = list((tmp_path / "out/parts").glob("*.log"))  # of the first that it tried, whichever it was
    assert logs and all("nonesuch" in log.read_text() for log in logs)
