"""Regions of interest (annex-lab sim --roi): what a run's results are of, and what runs before them."""

import pytest
import simulator
from test_sim import Simulator

from annex_lab import paths

pytestmark = simulator.needed

# Fills an array, then works in as many regions as it is told, each thread on its part; before and after, some more.
PROGRAM = r"""
#include <annex/region.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
enum { kBytes = 1 << 14, kCalls = 12000 };
static volatile char array[kBytes];
static int regions, threads;
static pthread_barrier_t all;
static void calls(int count) {
  for (int i = 0; i < count; ++i) {
    void* volatile block = malloc(40);
    free(block);
  }
}
static void* work(void* number) {
  for (int r = 0; r < regions; ++r) {
    pthread_barrier_wait(&all);
    if (number == 0) ANNEX_REGION_BEGIN();
    pthread_barrier_wait(&all);
    calls(kCalls / threads / regions);
    for (int i = 0; i < kBytes; i += 64) array[i];
    pthread_barrier_wait(&all);
    if (number == 0) ANNEX_REGION_END();
  }
  return 0;
}
int main(int count, char** arguments) {
  regions = atoi(arguments[1]);
  threads = atoi(arguments[2]);
  pthread_barrier_init(&all, 0, threads);
  calls(5000);
  for (int i = 0; i < kBytes; ++i) array[i] = i;
  pthread_t others[16];
  for (long i = 1; i < threads; ++i) pthread_create(&others[i], 0, work, (void*)i);
  work(0);
  for (int i = 1; i < threads; ++i) pthread_join(others[i], 0);
  calls(3000);
  puts("done");
}
"""


@pytest.fixture
def sim(tmp_path):
    simulator_ = Simulator(tmp_path)
    program = simulator_.compiled(PROGRAM, f"-I{paths.ROOT / 'include'}")

    def run(regions: int, threads: int, *options: object):
        done, results = simulator_(*options, "--threads", threads, "--", program, regions, "{threads}")
        assert done.returncode == 0 or not results, done.stderr
        return done, results

    return run


def test_results_are_of_the_region_alone(sim):
    done, results = sim(1, 1, "--roi")
    assert done.stdout == "done\n"
    functions = results["allocator"]["functions"]
    assert functions["allocate"]["calls"] == functions["free"]["calls"] == 12000
    assert results["region"]["calls_left_out"]["before"] >= 10000
    assert results["region"]["calls_left_out"]["after"] == 6000 + 1  # puts has a buffer
    assert "The region of interest alone" in done.stderr
    _, whole = sim(1, 1)
    left_out = results["region"]["instructions_left_out"]
    assert results["instructions"] + left_out["before"] + left_out["after"] == pytest.approx(
        whole["instructions"], rel=0.01
    )
    assert "region" not in whole


def test_what_runs_before_warms(sim):
    """The array is in the L1 and its pages are there: nothing that the region reads is missed."""
    _, results = sim(1, 1, "--roi")
    (core,) = results["memory"]["cores"]
    assert core["l1d"]["accesses"]["program"]["load"] > 256
    assert core["l1d"]["misses"]["program"]["load"] < 10
    assert sum(sum(kinds.values()) for kinds in results["memory"]["pages"]["faults"].values()) == 0
    assert results["memory"]["pages"]["resident"] > 1 << 14


def test_several_regions_add_up(sim):
    (_, one), (_, four) = (sim(regions, 1, "--roi") for regions in (1, 4))
    assert four["region"]["regions"] == 4
    calls = [results["allocator"]["functions"]["allocate"]["calls"] for results in (one, four)]
    assert calls == [12000, 12000]
    assert four["cycles"] == pytest.approx(one["cycles"], rel=0.05)


@pytest.mark.parametrize("options", [(), ("--hardware", "speedmalloc"), ("--lock-step",)])
def test_all_threads_are_timed_from_begin_to_end(sim, options):
    runs = [sim(1, 4, "--roi", *options)[1] for _ in range(2)]
    assert simulator.without_the_host(runs[0]) == simulator.without_the_host(runs[1])
    results = runs[0]
    assert results["allocator"]["functions"]["allocate"]["calls"] == pytest.approx(12000, abs=4)
    mains = results["cores"][:4]
    assert all(core["busy_cycles"] > 0.5 * results["cycles"] for core in mains)
    assert all(core["cycles"] == pytest.approx(results["cycles"], rel=0.05) for core in mains)
    assert not results["violations"]


def test_a_region_costs_the_same_as_in_a_whole_run(sim):
    """Timed from its begin on, the work takes the cycles that it takes where everything is timed."""
    _, region = sim(1, 1, "--roi")
    (_, without), (_, whole) = sim(0, 1), sim(1, 1)
    assert region["cycles"] == pytest.approx(whole["cycles"] - without["cycles"], rel=0.1)


def test_a_program_without_a_region_is_told(sim):
    done, results = sim(0, 1, "--roi")
    assert done.returncode == 2 and not results
    (line,) = [line for line in done.stderr.splitlines() if line]
    assert "no region of interest" in line and "annex/region.h" in line
