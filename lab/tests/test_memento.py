"""Memento+: simulated runs, from the command to the results."""

import copy

import pytest
import simulator
from test_sim import THREADS, Simulator

from annex_lab import paths
from annex_lab.sim import invariants

pytestmark = simulator.needed


@pytest.fixture
def sim(tmp_path):
    simulator_ = Simulator(tmp_path)

    def with_memento(*arguments, hardware="memento-plus"):
        return simulator_(*(("--hardware", hardware) if hardware else ()), *arguments)

    with_memento.compiled = simulator_.compiled
    return with_memento


def check_invariants(results: dict) -> None:
    assert results["memento"]["asked"] > 0
    assert results["violations"] == []


@pytest.mark.parametrize("allocator", ["glibc", "annex", "tcmalloc", "jemalloc", "mimalloc3"])
def test_small_blocks_are_served_and_again_the_same(sim, allocator):
    if allocator in ("tcmalloc", "jemalloc", "mimalloc3") and not (paths.PEERS / f"{allocator}.so").exists():
        pytest.skip(f"peers/build {allocator} has not been run")  # it takes longer than a run may
    program = sim.compiled(THREADS)
    runs = [sim("--allocator", allocator, "--threads", 4, "--", program, "{threads}") for _ in range(2)]
    (first, one), (_, two) = runs
    assert first.returncode == 0 and first.stdout.startswith("8000 "), first.stderr
    check_invariants(one)
    unit = one["memento"]
    assert unit["mallocs"] > 7800 and unit["frees"] > 7800  # of 8,000, a few of more than 512 bytes
    assert unit["software"] < 0.1 * unit["asked"]
    assert all(core["mallocs"] > 1000 for core in unit["each"][0]["cores"])
    assert "mallocs that hit" in " ".join(first.stderr.split())
    assert simulator.without_the_host(one) == simulator.without_the_host(two)


SIZES = r"""
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char** argv) {
  size_t size = atoi(argv[1]);
  for (int i = 0; i < 5000; ++i) {
    char* p = malloc(size);
    memset(p, 1, size);
    free(p);
  }
  return 0;
}
"""


def test_larger_blocks_are_the_allocators_own(sim):
    program = sim.compiled(SIZES)
    served = {}
    for size in (512, 513):
        _, plain = sim("--allocator", "glibc", "--", program, size, hardware="")
        done, results = sim("--allocator", "glibc", "--", program, size)
        assert done.returncode == 0 and results["violations"] == []
        served[size] = results["memento"]
        spent = results["all"]["allocator"]["instructions"] / plain["all"]["allocator"]["instructions"]
        if size == 512:
            assert spent < 0.4
        else:  # the same instructions; only what starts up has small blocks
            assert 0.8 < spent < 1.02
    assert served[512]["asked"] >= served[513]["asked"] + 10000
    assert served[513]["software"] >= served[512]["software"] + 10000


CROSS = r"""
#include <pthread.h>
#include <stdlib.h>
#define MANY 4000
static void* volatile box[MANY];
static void* take(void* unused) {
  for (int i = 0; i < MANY; ++i) {
    while (box[i] == NULL) __builtin_ia32_pause();
    free(box[i]);
  }
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, take, 0);
  for (int i = 0; i < MANY; ++i) box[i] = malloc(48);
  pthread_join(thread, 0);
  return 0;
}
"""


def test_what_another_core_frees_comes_back_by_the_transfer_cache(sim):
    done, results = sim("--threads", 2, "--", sim.compiled(CROSS))
    assert done.returncode == 0
    check_invariants(results)
    unit = results["memento"]
    cores = unit["each"][0]["cores"]
    taker = max(cores, key=lambda core: core["batches_put"])
    assert taker["objects_put"] >= 4000 - 16 - 8
    giver = max(cores, key=lambda core: core["mallocs"])
    assert giver is not taker and giver["objects_taken"] + giver["objects_made"] >= 4000
    assert unit["objects_made"] < 4000  # some came back


TOUCHES = r"""
#include <stdlib.h>
#include <string.h>
int main(void) {
  for (int i = 0; i < 20000; ++i) memset(malloc(256), 1, 256);
  return 0;
}
"""


def test_the_page_allocator_spares_page_faults(sim):
    program = sim.compiled(TOUCHES)
    (_, without), (_, with_pages) = (
        sim("--", program, hardware=name) for name in ("memento-plus", "memento-plus-pages")
    )
    for results in (without, with_pages):
        check_invariants(results)

    def faults(results: dict) -> int:
        return sum(results["all"][who]["cycles"]["page_fault"] for who in ("program", "allocator"))

    pages = with_pages["memento"]["pages"]
    assert without["memento"]["pages"] == 0 and 1200 < pages < 1600  # 5 MiB
    assert faults(without) - faults(with_pages) > pages * 1000
    assert with_pages["cycles"] < without["cycles"] - pages * 1000


ALIGNED = r"""
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
  for (int i = 0; i < 300; ++i) {
    void* p;
    if (posix_memalign(&p, 256, 100) != 0 || (uintptr_t)p % 256 != 0) return 1;
    free(p);
    p = aligned_alloc(64, 64);
    if ((uintptr_t)p % 64 != 0) return 2;
    free(p);
    char* q = malloc(20);
    memset(q, 7, 20);
    q = realloc(q, 24);
    q = realloc(q, 300);
    q = realloc(q, 9000);
    for (int j = 0; j < 20; ++j) if (q[j] != 7) return 3;
    free(q);
    q = calloc(10, 30);
    for (int j = 0; j < 300; ++j) if (q[j]) return 4;
    memset(q, 7, 300);
    free(q);
  }
  return 0;
}
"""


def test_aligned_blocks_are_softwares_and_reallocs_go_by_their_class(sim):
    done, results = sim("--", sim.compiled(ALIGNED))
    assert done.returncode == 0, done.stderr
    check_invariants(results)
    unit = results["memento"]
    # posix_memalign, aligned_alloc, their frees, the realloc beyond 512 bytes and the free of what it made.
    assert 1800 <= unit["software"] < 1850
    assert unit["resized"] >= 300


def test_a_program_with_an_allocator_of_its_own(sim):
    """Calls that jump out of it, or that must wait in the kernel, are nobody's objects."""
    from test_support_core import OWN

    for size, threads in ((11, 1), (13, 2)):
        done, results = sim("--threads", threads, "--", sim.compiled(OWN), size)
        assert done.returncode == 0, done.stderr
        check_invariants(results)
        assert results["memento"]["waited"] == (size == 13)


def counted() -> dict:
    core = {"mallocs": 10, "malloc_hits": 8, "batches_made": 1, "batches_taken": 1, "objects_made": 16}
    core |= {"objects_taken": 8, "frees": 9, "free_hits": 8, "batches_put": 1, "objects_put": 16, "kept": 7}
    unit = core | {"asked": 19, "software": 3, "waited": 0, "live": 1, "lost": 0}
    unit |= {"transfer": {"objects": 8, "locked": 3}, "cores": [core]}
    functions = {"allocate": {"calls": 12}, "free": {"calls": 10}}
    cycles = {"cycles": 7, "program": {"cycles": {"base": 4}}, "allocator": {"cycles": {"base": 3}}}
    machine = {"memento": {"objects": 16, "largest": 512}}
    return {
        "memento": {"each": [unit]}, "machine": machine, "complete": True, "cores": [cycles],
        "allocator": {"functions": functions},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda unit: None, []),
        (lambda unit: unit.update(lost=1), ["each object is kept", "asked for and not given back"]),
        (lambda unit: unit.update(objects_put=15), ["put and not taken"]),
        (lambda unit: unit.update(frees=8), ["asked for and not given back", "locked for each miss"]),
        (lambda unit: unit["transfer"].update(locked=4), ["locked for each miss"]),
        (lambda unit: unit.update(software=2), ["each call is somebody's"]),
        (lambda unit: unit["cores"][0].update(kept=8), ["comes and does not go"]),
        (lambda unit: unit["cores"][0].update(malloc_hits=9), ["a malloc hits or has a batch"]),
        (lambda unit: unit["cores"][0].update(free_hits=9), ["a free hits or puts a batch"]),
        (lambda unit: unit["cores"][0].update(kept=1025, frees=1027, free_hits=1026), ["no more than it has room"]),
    ],
)
def test_what_breaks_an_invariant_is_said(change, said):
    results = copy.deepcopy(counted())
    change(results["memento"]["each"][0])
    found = invariants.violations(results)
    assert len(found) == len(said), found
    assert all(any(part in line for line in found) for part in said), found
