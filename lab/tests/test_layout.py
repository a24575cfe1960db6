"""A seed moves a simulated program's stack, heap, libraries and code, as each start on Linux does."""

import itertools
import json

import pytest
import simulator
from test_sim import Simulator

from annex_lab.sim import cache, layout, run

PAGE = 4096

PLACES = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void) {
  int here;
  char* const heap = sbrk(0);
  char* const mapped = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char text[200];  // printf would ask for a buffer, from the heap
  int length = snprintf(text, sizeof text, "{\"stack\": %lu, \"heap\": %lu, \"libraries\": %lu, \"program\": %lu, "
                        "\"mapped\": %lu}\n", (unsigned long)&here, (unsigned long)heap, (unsigned long)&memset,
                        (unsigned long)&main, (unsigned long)mapped);
  return write(1, text, length) != length;
}
"""


@pytest.fixture
def sim(tmp_path):
    return Simulator(tmp_path)


@pytest.fixture
def places(sim):
    program = sim.compiled(PLACES)

    def of(*options: object) -> dict[str, int]:
        done, _ = sim(*options, "--", program)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return of


@simulator.needed
def test_seeds_move_stack_heap_libraries_and_program(places):
    seeds = [places("--seed", seed) for seed in (1, 2, 3, 4)]
    for one, other in itertools.combinations(seeds, 2):
        moved = {name: other[name] - one[name] for name in one}
        assert all(moved.values()), moved
        assert moved["heap"] != moved["program"] != moved["libraries"] == moved["mapped"], moved
        assert all(moved[name] % PAGE == 0 for name in ("heap", "libraries", "program"))
        assert moved["stack"] % 16 == 0
    # By 16 bytes within a page, and over more than what caches and huge pages tell apart.
    assert any((one["stack"] - seeds[0]["stack"]) % PAGE for one in seeds)
    for name in ("stack", "heap", "libraries", "program"):
        assert max(one[name] for one in seeds) - min(one[name] for one in seeds) > 4 << 20, name


@simulator.needed
def test_layout_0_is_the_same_for_every_seed(places):
    assert places("--layout", 0, "--seed", 5) == places("--layout", 0, "--seed", 6) != places("--seed", 6)
    assert places("--layout", 6, "--seed", 5) == places("--seed", 6)


@simulator.needed
@pytest.mark.parametrize("seed", [1, 7])
def test_the_same_seed_gives_the_same_statistics(sim, seed):
    program = sim.compiled(PLACES)
    (first, one), (second, two) = (sim("--seed", seed, "--", program) for _ in range(2))
    assert first.stdout == second.stdout != ""
    assert one["layout"] == seed
    assert simulator.without_the_host(one) == simulator.without_the_host(two)


# What brk says: Linux returns where the break is, whatever it was asked for in vain.
BREAKS = r"""
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static char* moved(char* to) { return (char*)syscall(SYS_brk, to); }
int main(void) {
  char* const start = sbrk(0);
  if (moved(start - 4096) != start || moved((char*)1) != start) return 1;  // below the heap
  char* const end = start + (3 << 20);
  if (moved(end) != end || moved(0) != end) return 2;
  memset(start, 1, end - start);
  if (moved(start - 1) != end) return 3;
  if (moved(start + 4096) != start + 4096 || start[0] != 1) return 4;
  if (moved(start) != start || moved(0) != start) return 5;
  if (moved(end) != end || *(volatile char*)start != 0) return 6;  // new pages
}
"""


@simulator.needed
@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_heap_is_as_linux_has_it(sim, number):
    done, results = sim("--layout", number, "--", sim.compiled(BREAKS))
    assert done.returncode == 0
    assert results["memory"]["pages"]["peak_resident"] < 6 << 20  # the gap before it is no memory


@simulator.needed
def test_layouts_cost_no_instructions(sim):
    """Or hardly any: what differs is where things are."""
    program = sim.compiled("int main(void) { return 0; }", "-fPIE", "-pie")
    counts = {sim("--layout", number, "--", program)[1]["instructions"] for number in (0, 1, 2, 3)}
    assert max(counts) - min(counts) < 0.005 * min(counts), counts


def test_a_number_says_where_each_part_lies():
    """The same on every host, and in results that are kept."""
    assert layout.numbered(0) == layout.Layout(0, 0, 0, 0)
    assert layout.numbered(1) == layout.Layout(1, 179083, 1484, 42)
    many = [layout.numbered(number) for number in range(1, 2000)]
    for part, choices in (("mappings", layout.MAPPINGS), ("heap", layout.HEAP), ("stack", layout.STACK)):
        values = [getattr(one, part) for one in many]
        assert 0 <= min(values) < 0.01 * choices and 0.99 * choices <= max(values) < choices
        assert len({value % 2 for value in values}) == 2
    assert len({(one.mappings, one.heap, one.stack) for one in many}) == len(many)


def test_results_are_kept_by_layout(tmp_path, monkeypatch):
    machine = run.machines.PRESETS / "speedmalloc-1.toml"

    def key(seed: int, number: int | None = None) -> str:
        guest = run.Guest(["/bin/true"])
        return cache.key(cache.ingredients(guest, machine, tmp_path, 1, seed, layout=number))

    try:
        usual = key(1)
    except run.CannotRun as why:
        pytest.skip(str(why))
    assert usual == key(1, 1) and len({usual, key(2), key(1, 2), key(1, 0)}) == 4
    monkeypatch.setattr(layout, "ADDRESSES", 2 * layout.ADDRESSES)
    assert key(1) != usual
