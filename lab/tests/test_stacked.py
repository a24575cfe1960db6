"""Mallacc in a support core: Annex with markers, whose calls run there."""

import subprocess

import pytest
import simulator
from test_sim import THREADS, Simulator

from annex_lab import paths

pytestmark = simulator.needed

ALLOCATOR = "annex-marked"


@pytest.fixture(scope="module", autouse=True)
def marked():
    target = f"{ALLOCATOR}-shared"
    subprocess.run(["cmake", "--build", "--preset", "release", "--target", target], cwd=paths.ROOT, check=True)


@pytest.fixture
def run(tmp_path):
    sim = Simulator(tmp_path)
    program = sim.compiled(THREADS)

    def with_settings(*settings):
        arguments = [part for setting in settings for part in ("--set", setting)]
        done, results = sim(
            *("--hardware", "speedmalloc", "--allocator", ALLOCATOR, "--threads", 4, *arguments),
            *("--", program, "{threads}"),
        )
        assert done.returncode == 0, done.stderr
        assert results["violations"] == []
        return results

    return with_settings


def test_the_support_core_has_the_malloc_cache(run):
    without, both = run(), run("mallacc.entries=32")
    unit, served = both["mallacc"], both["support_core"]
    assert unit["wrong_answers"] == unit["steps_without_end"] == 0
    assert unit["lookups"] >= served["malloc_queue"]["taken"]
    assert unit["lookup_hits"] > 0.9 * unit["lookups"]
    assert served["replayed"] == served["steps"]
    assert served["service"] / served["served"] < without["support_core"]["service"] / without["support_core"]["served"]


def test_one_of_no_entries_changes_no_cycle(run):
    without, none = run(), run("mallacc.entries=0")
    for key in ("cycles", "all", "memory", "support_core"):
        assert without[key] == none[key]
    assert "mallacc" not in none


def test_the_same_run_is_the_same_again(run):
    one, two = run("mallacc.entries=32"), run("mallacc.entries=32")
    assert simulator.without_the_host(one) == simulator.without_the_host(two)
