"""The allocator on a support core: simulated runs, from the command to the results."""

import pytest
import simulator
from test_sim import THREADS, Simulator

from annex_lab.sim import invariants

pytestmark = simulator.needed


@pytest.fixture
def sim(tmp_path):
    simulator_ = Simulator(tmp_path)

    def on_support_core(*arguments, hardware="speedmalloc"):
        return simulator_("--hardware", hardware, *arguments)

    on_support_core.compiled = simulator_.compiled
    return on_support_core


def check_invariants(results: dict) -> None:
    assert results["support_core"]["served"] > 0
    assert results["violations"] == []


def main_cores(results: dict) -> list[dict]:
    return results["cores"][: results["machine"]["thread_cores"]]


@pytest.mark.parametrize("allocator", ["glibc", "annex"])
@pytest.mark.parametrize("threads", [1, 4, 16])
def test_every_call_is_run_once_and_again_the_same(sim, allocator, threads):
    program = sim.compiled(THREADS)
    runs = [sim("--allocator", allocator, "--threads", threads, "--", program, "{threads}") for _ in range(2)]
    (first, one), (second, two) = runs
    assert first.returncode == second.returncode == 0, first.stderr
    assert first.stdout == second.stdout and first.stdout.startswith(f"{threads * 2000} ")
    check_invariants(one)
    assert one["support_core"]["served"] >= threads * 4000
    own = one["support_core"]["at_their_own_cores"]
    assert own["waited"] == own["beside_a_waiting_one"] == 0
    # Of each call a main core runs what asks and what returns.
    left = sum(core["allocator"]["instructions"] for core in main_cores(one))
    assert left < 2 * one["support_core"]["served"] + 3000 * sum(own.values())  # whose start is long
    assert "malloc to pointer" in " ".join(first.stderr.split())
    assert simulator.without_the_host(one) == simulator.without_the_host(two)


def test_no_locked_instruction_is_left_on_main_cores(sim):
    program = sim.compiled(THREADS)
    _, results = sim("--threads", 4, "--allocator", "glibc", "--", program, "{threads}")
    own = sum(results["support_core"]["at_their_own_cores"].values())
    assert sum(core["allocator"]["atomics"] for core in main_cores(results)) <= 10 * own
    assert results["cores"][results["support_core"]["core"]]["allocator"]["atomics"] > 1000


def lines_taken(results: dict) -> float:
    """Lines that the support core takes out of main cores' caches, a call."""
    unit = results["support_core"]
    return results["memory"]["cores"][unit["core"]]["coherence"]["transfers"]["allocator"] / unit["served"]


def test_metadata_apart_leaves_blocks_in_the_programs_caches(sim):
    """SpeedMalloc 5.1.1: what the support core reads and writes is in no block."""
    taken = {}
    for allocator in ("annex", "annex-segregated"):
        small = ("--workload", "gap-bfs", "--scale", 1, "--", "--vertices", 196)
        _, results = sim("--threads", 4, "--allocator", allocator, *small)
        check_invariants(results)
        taken[allocator] = lines_taken(results)
    assert taken["annex-segregated"] < 0.05 < 0.2 < taken["annex"]


def test_what_has_no_lock_is_for_one_caller(sim, tmp_path):
    refused, _ = Simulator(tmp_path)("--threads", 2, "--allocator", "annex-segregated", "--", "true")
    assert refused.returncode == 2 and "has no lock" in refused.stderr and len(refused.stderr.splitlines()) <= 2


def test_bounds(sim):
    program = sim.compiled(THREADS)

    def cycles(*settings: str) -> int:
        arguments = [part for setting in settings for part in ("--set", setting)]
        done, results = sim(*arguments, "--", program, 1)
        assert done.returncode == 0, done.stderr
        check_invariants(results)
        return results["cycles"]

    free = cycles("support_core.service=none", "support_core.link=0")
    usual = cycles()
    slow = cycles("support_core.reply=at-end", "support_core.link=200")
    assert free < usual < slow


@pytest.mark.parametrize("hardware", ["ic-malloc", "ic-malloc-signals", "ic-malloc-queues"])
def test_an_idle_core_in_its_place(sim, hardware):
    program = sim.compiled(THREADS)
    arguments = ("--allocator", "annex", "--threads", 4, "--", program, "{threads}")
    (done, one), (_, two) = (sim(*arguments, hardware=hardware) for _ in range(2))
    assert done.returncode == 0 and done.stdout.startswith("8000 "), done.stderr
    check_invariants(one)
    assert simulator.without_the_host(one) == simulator.without_the_host(two)
    unit = one["support_core"]
    atomics = sum(core["allocator"]["atomics"] for core in main_cores(one))
    own = 100 * sum(unit["at_their_own_cores"].values())  # the first ones
    if hardware == "ic-malloc":  # a locked exchange each, and lines that go to and fro
        assert unit["served"] <= atomics <= unit["served"] + own
        assert unit["asking"] > (24 + 12 + 16) * unit["malloc_queue"]["taken"]  # its line taken back, the exchange
    else:
        assert atomics <= own
    if hardware == "ic-malloc-signals":  # no queue: one of each core at a time
        assert unit["malloc_queue"]["most"] <= 4 and unit["free_queue"]["most"] <= 4


def test_a_unit_that_takes_a_fixed_time(sim):
    program = sim.compiled(THREADS)
    done, results = sim("--threads", 4, "--", program, "{threads}", hardware="fixed-time")
    assert done.returncode == 0 and done.stdout.startswith("8000 "), done.stderr
    unit = results["fixed_time"]
    assert unit["mallocs"] >= 8000 and unit["frees"] >= 8000
    assert unit["stubs"]["atomics"] == 0


CHAIN = r"""
#include <stdint.h>
#include <stdlib.h>
int main(void) {
  void* p = NULL;
  for (int i = 0; i < 2000; ++i) {
    void* next = malloc(16 + ((uintptr_t)p & 1));  // each needs the last one's pointer
    free(p);
    p = next;
  }
  return 0;
}
"""


def test_what_the_unit_takes_is_waited_for(sim):
    program = sim.compiled(CHAIN)
    cycles = {}
    for takes in (100, 600):
        done, results = sim("--set", f"fixed_time.cycles={takes}", "--", program, hardware="fixed-time")
        assert done.returncode == 0, done.stderr
        cycles[takes] = results["cycles"]
    # One after the other, but for the last, which nobody waits for, and what the program's start allocates.
    assert cycles[600] - cycles[100] == pytest.approx(2000 * 500, rel=0.01)


@pytest.mark.parametrize("cores", [2, 3])
def test_several_support_cores_have_a_cluster_each(sim, cores):
    program = sim.compiled(THREADS)
    setting = f"support_core.cores={cores}"
    done, results = sim("--set", setting, "--threads", 4, "--allocator", "glibc", "--", program, "{threads}")
    assert done.returncode == 0 and done.stdout.startswith("8000 "), done.stderr
    check_invariants(results)
    each = results["support_core"]["each"]
    assert len(each) == cores
    assert sum(unit["served"] for unit in each) == results["support_core"]["served"]
    # Each thread makes about as many calls, and each support core serves one main core or two.
    assert all(unit["served"] > 0.2 * results["support_core"]["served"] for unit in each)
    assert [unit["core"] for unit in each] == [4 + number for number in range(cores)]


ALIGNED = r"""
#include <stdint.h>
#include <stdlib.h>
int main(void) {
  for (int i = 0; i < 500; ++i) {
    void* p;
    if (posix_memalign(&p, 256, 100) != 0 || (uintptr_t)p % 256 != 0) return 1;
    *(volatile char*)p = 1;  // needs the pointer
    free(p);
  }
  return 0;
}
"""


def test_a_result_that_comes_through_memory_is_waited_for(sim):
    program = sim.compiled(ALIGNED)
    waited = {}
    for link in (8, 400):
        done, results = sim("--set", f"support_core.link={link}", "--", program)
        assert done.returncode == 0
        check_invariants(results)
        waited[link] = results["cycles"]
    assert waited[400] - waited[8] > 500 * 2 * 390


def test_with_the_callers_own_data(sim):
    program = sim.compiled(THREADS)
    done, results = sim(
        "--threads", 4, "--set", "support_core.context=caller", "--allocator", "annex", "--", program, "{threads}"
    )
    assert done.returncode == 0 and done.stdout.startswith("8000 ")
    check_invariants(results)
    assert sum(results["support_core"]["at_their_own_cores"].values()) == 0


CLEARS = r"""
#include <stdlib.h>
#include <string.h>
int main(void) {
  for (int i = 0; i < 200; ++i) {
    char* p = calloc(1, 4000);
    for (int j = 0; j < 4000; ++j) if (p[j]) return 1;
    memset(p, 'x', 4000);
    p = realloc(p, 9000);
    for (int j = 0; j < 4000; ++j) if (p[j] != 'x') return 2;
    free(p);
  }
  return 0;
}
"""


def test_clearing_and_copying_stay_with_the_main_core(sim):
    done, results = sim("--", sim.compiled(CLEARS))
    assert done.returncode == 0
    check_invariants(results)
    assert results["support_core"]["data_steps"] > 200


# A program with an allocator of its own, for what a call may do.
OWN = r"""
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static char memory[1 << 26];
static size_t used;
static jmp_buf out;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int holds;
static void handle(int signal) { (void)signal; }
void* malloc(size_t size) {
  if (size == 11) longjmp(out, 1);
  if (size == 12) raise(SIGUSR1);
  if (size == 13) pthread_mutex_lock(&lock), pthread_mutex_unlock(&lock);
  return memory + __sync_fetch_and_add(&used, (size + 15) & ~(size_t)15);
}
void free(void* p) { (void)p; }
void* calloc(size_t n, size_t size) { return malloc(n * size); }
void* realloc(void* p, size_t size) { (void)p; return malloc(size); }
static void* hold(void* unused) {
  pthread_mutex_lock(&lock);
  holds = 1;
  usleep(100);
  pthread_mutex_unlock(&lock);
  return unused;
}
int main(int argc, char** argv) {
  pthread_t thread;
  signal(SIGUSR1, handle);
  int size = atoi(argv[1]), jumps = 0;
  for (int i = 0; i < 100; ++i) {
    if (setjmp(out) == 0) { if (size != 13) (void)!malloc(size); } else ++jumps;
    free(malloc(24));
  }
  if (size == 13) {
    pthread_create(&thread, 0, hold, 0);
    while (!holds) ;
    *(volatile char*)malloc(13) = 1;
    pthread_join(thread, 0);
  }
  printf("%d\n", jumps);
  return 0;
}
"""


# An allocator that starts threads its own way, as rpmalloc does, and is ready for that from its constructor on.
STARTS_THREADS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
static int ready;
__attribute__((constructor)) static void start(void) { ready = 1; }
int pthread_create(pthread_t* thread, const pthread_attr_t* how, void* (*run)(void*), void* argument) {
  if (!ready) abort();
  int (*real)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) = dlsym(RTLD_NEXT, "pthread_create");
  return real(thread, how, run, argument);
}
static char memory[1 << 26];
static size_t used;
void* malloc(size_t size) { return memory + __sync_fetch_and_add(&used, (size + 15) & ~(size_t)15); }
void free(void* p) { (void)p; }
void* calloc(size_t n, size_t size) { return malloc(n * size); }
void* realloc(void* p, size_t size) { (void)p; return malloc(size); }
"""


def test_the_parked_thread_finds_an_allocator_that_is_ready(sim):
    library = sim.compiled(STARTS_THREADS, "-shared", "-fPIC")
    done, results = sim("--allocator", library, "--", sim.compiled(THREADS), 1)
    assert done.returncode == 0 and done.stdout.startswith("2000 "), done.stderr
    check_invariants(results)


def test_a_call_that_is_left_by_a_jump_is_over(sim):
    done, results = sim("--", sim.compiled(OWN), 11)
    assert done.returncode == 0 and done.stdout == "100\n", done.stderr
    check_invariants(results)
    assert results["support_core"]["malloc_queue"]["requests"] >= 200


def test_a_call_that_waits_runs_at_its_own_core(sim):
    done, results = sim("--threads", 2, "--", sim.compiled(OWN), 13)
    assert done.returncode == 0, done.stderr
    check_invariants(results)
    assert results["support_core"]["at_their_own_cores"]["waited"] == 1


def test_a_signal_in_a_call_is_refused(sim):
    done, _ = sim("--", sim.compiled(OWN), 12)
    assert done.returncode == 2
    assert "a signal came in the middle of a call" in " ".join(done.stderr.split())


def unit(**changed) -> dict:
    queue = {"requests": 10, "taken": 10, "area": 50, "waited": 50}
    fine = {"core": 1, "replayed": 90, "steps": 90, "served": 20, "malloc_queue": queue, "free_queue": queue}
    return {**fine, "asking": 88, "reply": 200, "answering": 80, "asked_to_answered": 418, **changed}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, ""),
        ({"replayed": 91}, "each captured block is run once"),
        ({"served": 19}, "each request is served"),
        ({"free_queue": {"requests": 10, "taken": 9, "area": 50, "waited": 50}}, "each queued free is taken"),
        ({"malloc_queue": {"requests": 10, "taken": 10, "area": 49, "waited": 50}}, "Little's law of the mallocs"),
        ({"asked_to_answered": 417}, "a malloc takes its way there"),
        ({"asking": 89, "asked_to_answered": 419}, "a request takes a link"),
        ({"answering": 81, "asked_to_answered": 419}, "an answer takes a link"),
    ],
)
def test_what_breaks_an_invariant_is_said(changed, said):
    machine = {
        "support_core": {"requests": "queues", "link": 8, "registers": 8, "register_buffer": 16, "context": "parked"}
    }
    core = {"cycles": 7, "program": {"cycles": {"base": 4}}, "allocator": {"cycles": {"base": 3}}}
    whole = {"each": [unit(**changed)], "served": 20, "stubs": {"atomics": 0, "misses": 0}}
    results = {"support_core": whole, "machine": machine, "complete": True, "cores": [core]}
    found = invariants.violations(results)
    assert len(found) == bool(said)
    assert all(said in line for line in found)
    whole["stubs"]["atomics"] = 1
    assert "no locked instruction of the allocator's is left on main cores: 1 is not 0" in invariants.violations(
        results
    )
    whole["stubs"] = {"atomics": 0, "misses": 20}
    core["cycles"] = 8
    assert len(invariants.violations(results)) == 2 + bool(said)


def test_wrong_names_are_refused(sim, tmp_path):
    plain = Simulator(tmp_path)
    for arguments, what in (
        (("--hardware", "quick"), "no hardware is called quick: fixed-time, "),
        (("--set", "support_core.queue"), "must be GROUP.NAME=VALUE"),
        (("--hardware", "speedmalloc", "--set", "support_core.queu=3"), "support_core.queu: no such parameter"),
    ):
        done, _ = plain(*arguments, "--", "/bin/true")
        assert done.returncode == 2
        assert what in " ".join(done.stderr.split())
