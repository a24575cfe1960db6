"""Counts are those of the program, of its process alone, under the allocator that was asked for."""

import os
import subprocess
from pathlib import Path

import pytest

from annex_lab import count, paths
from annex_lab.allocators import Allocator
from annex_lab.programs.model import Command, Program, Server
from annex_lab.sample import RunFailed

GLIBC = Allocator("glibc", None, "")

# A loop of 1 instruction per turn at the least; MODE says what else it does.
PROBE = r"""
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void turns(long n) {
  for (volatile long i = 0; i < n; ++i) free(malloc(32));
}

int main(int count, char** argument) {
  const long n = atol(argument[2]);
  if (strcmp(argument[1], "loop") == 0) turns(n);
  if (strcmp(argument[1], "fork") == 0) {
    if (fork() == 0) {
      turns(n);
      exit(0);
    }
    wait(NULL);
  }
  if (strcmp(argument[1], "replaced") == 0) execl("/bin/true", "true", NULL);
  if (strcmp(argument[1], "walk") == 0) {  // one read of each line of n bytes
    volatile char* block = malloc(n);
    for (long i = 0; i < n; i += 64) (void)block[i];
  }
  return 0;
}
"""


@pytest.fixture(scope="module")
def probe(tmp_path_factory):
    folder = tmp_path_factory.mktemp("probe")
    (folder / "probe.c").write_text(PROBE)
    subprocess.run(["cc", "-O1", "-fno-builtin", str(folder / "probe.c"), "-o", str(folder / "probe")], check=True)
    return str(folder / "probe")


@pytest.fixture(autouse=True)
def _valgrind():
    try:
        count.valgrind()
    except RunFailed as why:
        if os.environ.get("ANNEX_REQUIRE_ALL"):
            raise
        pytest.skip(str(why))


def library(name: str) -> Allocator:
    found = paths.RELEASE / name
    if not found.exists() and not os.environ.get("ANNEX_REQUIRE_ALL"):
        pytest.skip(f"{found} is not built")
    return Allocator(found.stem, found, "")


def test_instructions_grow_with_the_work(program, context, probe):
    def instructions(turns: int) -> int:
        return count.measure(program(probe, "loop", str(turns)), context, GLIBC)["instructions"]

    none, some, double = (instructions(turns) for turns in (0, 20000, 40000))
    assert 10_000 < none < 5_000_000  # the dynamic linker, mostly
    assert 20 * 20000 < some - none < 1000 * 20000
    assert double - some == pytest.approx(some - none, rel=0.01)


def test_two_runs_agree(program, context, probe):
    one, other = (count.measure(program(probe, "loop", "20000"), context, GLIBC) for _ in range(2))
    assert one["instructions"] == pytest.approx(other["instructions"], rel=1e-4)


def test_misses_are_those_of_the_lines_touched(program, context, probe):
    few, many = (count.measure(program(probe, "walk", str(size)), context, GLIBC) for size in (64, 4 << 20))
    lines = (4 << 20) // 64
    assert many["l1d_misses"] - few["l1d_misses"] == pytest.approx(lines, rel=0.02)
    assert few["ll_misses"] <= few["l1i_misses"] + few["l1d_misses"] < few["data_reads"]
    assert 0 < few["branch_mispredictions"] < few["branches"] < few["instructions"]
    assert few["l1d_bytes"] >= 4096 and few["ll_bytes"] > few["l1d_bytes"]


@pytest.mark.parametrize("name", ["libannex.so", "libannex-solo.so"])
def test_the_allocator_under_test_is_the_one_that_counts(program, context, probe, name):
    ours = count.measure(program(probe, "loop", "20000"), context, library(name))
    assert ours["allocator"] == Path(name).stem and ours["instructions"] > 20 * 20000


def test_another_allocators_counts_are_refused(program, context, probe):
    no_allocator = Allocator("maths", Path("/lib/x86_64-linux-gnu/libm.so.6"), "")
    with pytest.raises(RunFailed, match=r"malloc is served by libc\.so\.6"):
        count.measure(program(probe, "loop", "10"), context, no_allocator)


def test_children_are_not_counted(program, context, probe):
    own, forked = (count.measure(program(probe, "fork", turns), context, GLIBC) for turns in ("0", "100000"))
    assert forked["instructions"] == pytest.approx(own["instructions"], rel=0.02)


def test_a_program_replaced_by_exec_is_a_failure(program, context, probe):
    with pytest.raises(RunFailed, match="exec"):
        count.measure(program(probe, "replaced", "0"), context, GLIBC)


def test_several_runs_in_a_sample_are_counted_once(program, context, probe):
    one, many = (count.measure(program(probe, "loop", "1000", times=t), context, GLIBC) for t in (1, 5))
    assert many["instructions"] == pytest.approx(one["instructions"], rel=0.01)


def test_the_limit_is_longer_than_for_a_sample(program, context, monkeypatch):
    limits = []

    def started(_program, patient, *_allocator):
        limits.append(patient.limit_s)
        raise RunFailed("as far as this test goes")

    monkeypatch.setattr(count.sample, "run", started)
    with pytest.raises(RunFailed, match="as far"):
        count.measure(program("/bin/true"), context, GLIBC)
    assert limits == [context.limit_s * count.SLOWER] and count.SLOWER > 1


def test_a_failing_program_is_a_failure(program, context):
    with pytest.raises(RunFailed, match="exited with 3"):
        count.measure(program("/bin/sh", "-c", "exit 3"), context, GLIBC)


def test_servers_are_not_counted(context):
    server = Server(Command(["/bin/true"]), lambda: True, ["/bin/true"], lambda _output: 1.0)
    with pytest.raises(RunFailed, match="servers are not counted"):
        count.measure(Program("server", "multi", "a test", lambda _context: server), context, GLIBC)


PROFILE = """\
desc: I1 cache: 32768 B, 64 B, 8-way associative
desc: D1 cache: 49152 B, 64 B, 12-way associative
desc: LL cache: 1048576 B, 64 B, 16-way associative
events: Ir Dr Dw
ob=(1) /bin/program
fl=(1) main.c
fn=(1) main
10 5
cob=(2) /lib/liballoc.so
cfi=(2) alloc.c
cfn=(2) malloc
calls=3 0
10 90
cfn=(3) helper
calls=1 0
11 1
ob=(2)
fn=(2)
1 80 2
cob=(2)
cfn=(4) inner
calls=1 0
1 7
totals: 100 2
"""


def test_totals_are_read_with_the_zeros_left_out():
    assert count.totals(PROFILE) == {"I1": 32768, "D1": 49152, "LL": 1048576, "Ir": 100, "Dr": 2, "Dw": 0}
    with pytest.raises(ValueError, match="no totals"):
        count.totals(PROFILE.partition("totals")[0])


def test_calls_from_one_object_into_another_are_read():
    assert count.callers(PROFILE) == {"/lib/liballoc.so": {"malloc"}}


def test_who_serves_malloc_is_told_by_who_was_called():
    assert count.complaint(PROFILE, "liballoc.so") is None
    assert count.complaint(PROFILE, "libother.so") == "malloc is served by liballoc.so"
    assert count.complaint(PROFILE.replace("malloc", "alias"), "libother.so") == "libother.so was never called"
    elsewhere = PROFILE.replace("/lib/liballoc.so", "???")  # in nobody's .text: neither proof nor disproof
    assert count.complaint(elsewhere, "libother.so") == "libother.so was never called"
