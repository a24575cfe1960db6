"""The timer of calls sees each call once, whatever it is called by, and its percentiles are right."""

import dataclasses
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from annex_lab import latency, paths, sample
from annex_lab.allocators import Allocator
from annex_lab.latency import Recorded
from annex_lab.sample import RunFailed

GLIBC = Allocator("glibc", None, "")
LIBRARIES = ["libannex.so", "libannex-solo.so"]

# Makes MODE's calls N times. What else the process calls is the same whatever N is, so differences are exact.
PROBE = r"""
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_barrier_t all_here;

static void pairs(long n) {
  for (long i = 0; i < n; ++i) free(malloc(16 + i % 4000));
}

static void family(long n) {
  for (long i = 0; i < n; ++i) {
    void* aligned;
    char* copy = strdup("a copy");
    char* part = strndup("a copy", 3);
    if (strcmp(copy, "a copy") != 0 || strcmp(part, "a c") != 0) abort();
    free(part);
    free(copy);
    free(realloc(calloc(3, 5), 1000));
    free(reallocarray(NULL, 7, 9));
    if (posix_memalign(&aligned, 64, 100) != 0) abort();
    free(aligned);
    free(aligned_alloc(32, 64));
    free(memalign(128, 10));
    free(valloc(10));
    free(pvalloc(10));
  }
}

static void* in_thread(void* n) {
  pthread_barrier_wait(&all_here);
  pairs((long)n);
  return NULL;
}

static void threads(long n) {
  pthread_t thread[4];
  pthread_barrier_init(&all_here, NULL, 4);
  for (int i = 0; i < 4; ++i) pthread_create(&thread[i], NULL, in_thread, (void*)n);
  for (int i = 0; i < 4; ++i) pthread_join(thread[i], NULL);
}

static void one_by_one(long n) {  // each thread takes over its predecessor's table
  pthread_barrier_init(&all_here, NULL, 1);
  for (int i = 0; i < 50; ++i) {
    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, (void*)n);
    pthread_join(thread, NULL);
  }
}

static void in_child(long n, int leave_at_once) {
  if (fork() == 0) {
    pairs(n);
    if (leave_at_once) _exit(0);
    exit(0);
  }
  wait(NULL);
}

int main(int count, char** argument) {
  const char* mode = argument[1];
  const long n = count > 2 ? atol(argument[2]) : 0;
  if (strcmp(mode, "pairs") == 0) pairs(n);
  if (strcmp(mode, "family") == 0) family(n);
  if (strcmp(mode, "threads") == 0) threads(n);
  if (strcmp(mode, "one-by-one") == 0) one_by_one(n);
  if (strcmp(mode, "fork") == 0) in_child(n, 0);
  if (strcmp(mode, "fork-exit") == 0) in_child(n, 1);
  if (strcmp(mode, "child") == 0) {
    if (vfork() == 0) {
      execl(argument[0], argument[0], "pairs", argument[2], NULL);
      _exit(1);
    }
    wait(NULL);
  }
  if (strcmp(mode, "replaced") == 0) execl("/bin/true", "true", NULL);
  if (strcmp(mode, "killed") == 0) kill(getpid(), SIGTERM);
  if (strcmp(mode, "_exit") == 0) {
    pairs(n);
    _exit(0);
  }
  return 0;
}
"""

CXX_PROBE = r"""
#include <cstdlib>
#include <new>

struct alignas(64) Wide { char bytes[64]; };

int main(int, char** argument) {
  const long n = std::atol(argument[1]);
  for (long i = 0; i < n; ++i) {
    ::operator delete(::operator new(10));
    ::operator delete(::operator new(10), std::size_t{10});
    ::operator delete[](::operator new[](10));
    ::operator delete[](::operator new[](10), std::size_t{10});
    ::operator delete(::operator new(10, std::nothrow), std::nothrow);
    ::operator delete[](::operator new[](10, std::nothrow), std::nothrow);
    delete new Wide;
    delete[] new Wide[3];
    ::operator delete(::operator new(64, std::align_val_t{64}, std::nothrow), std::align_val_t{64}, std::nothrow);
    ::operator delete[](::operator new[](64, std::align_val_t{64}, std::nothrow), std::align_val_t{64}, std::nothrow);
    volatile std::size_t too_much = std::size_t{1} << 62;
    try {
      ::operator delete(::operator new(too_much));
      return 1;
    } catch (const std::bad_alloc&) {
    }
  }
}
"""


@pytest.fixture(scope="module")
def probes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("probes")
    for name, compiler, text in (("probe.c", "cc", PROBE), ("cxx.cpp", "c++", CXX_PROBE)):
        (folder / name).write_text(text)
        out = folder / name.partition(".")[0]
        standard = ["-std=c++17"] if compiler == "c++" else []
        subprocess.run([compiler, "-O0", "-w", "-pthread", *standard, str(folder / name), "-o", str(out)], check=True)
    return folder


@pytest.fixture(params=["glibc", *LIBRARIES])
def allocator(request):
    if request.param == "glibc":
        return GLIBC
    library = paths.RELEASE / request.param
    if not library.exists() and not os.environ.get("ANNEX_REQUIRE_ALL"):
        pytest.skip(f"{library} is not built")
    return Allocator(library.stem, library, "")


@pytest.fixture
def counted(program, context):
    """Makes a function that runs a command and gives its (malloc, free) calls."""

    def run(allocator: Allocator, *argv) -> tuple[int, int]:
        items = latency.measure(program(*map(str, argv)), context, allocator)
        assert [item["call"] for item in items] == ["malloc", "free"]
        return tuple(item["calls"] for item in items)

    return run


def added(counted, allocator: Allocator, *command, n: int) -> tuple[int, int]:
    """The calls that a program makes with N = n more than with N = 0."""
    before, after = counted(allocator, *command, 0), counted(allocator, *command, n)
    return after[0] - before[0], after[1] - before[1]


@pytest.mark.parametrize(
    ("mode", "n", "mallocs", "frees"),
    [
        ("pairs", 1000, 1000, 1000),
        ("family", 100, 1000, 900),  # strdup, strndup, calloc and realloc of one block, six more
        ("threads", 500, 2000, 2000),
        ("one-by-one", 100, 5000, 5000),
        ("_exit", 1000, 1000, 1000),
    ],
)
def test_every_call_is_counted_once(probes, counted, allocator, mode, n, mallocs, frees):
    assert added(counted, allocator, probes / "probe", mode, n=n) == (mallocs, frees)


@pytest.mark.parametrize("mode", ["fork", "fork-exit", "child"])
def test_calls_of_children_are_not_counted(probes, counted, allocator, mode):
    assert added(counted, allocator, probes / "probe", mode, n=1000) == (0, 0)


def test_operators_count_once_even_where_they_call_malloc(probes, counted, allocator):
    # A call that throws gives no time; the exception is allocated within it, and freed outside.
    assert added(counted, allocator, probes / "cxx", n=100) == (1000, 1100)


@pytest.mark.parametrize(("mode", "why"), [("replaced", "without leaving"), ("killed", "SIGTERM")])
def test_a_program_that_leaves_no_file_is_a_failure(probes, program, context, mode, why):
    with pytest.raises(RunFailed, match=why):
        latency.measure(program(str(probes / "probe"), mode), context, GLIBC)


def test_another_allocators_times_are_refused(program, context):
    no_allocator = Allocator("maths", Path("/lib/x86_64-linux-gnu/libm.so.6"), "")
    with pytest.raises(RunFailed, match=r"malloc is served by libc\.so\.6"):
        latency.measure(program("/bin/true"), context, no_allocator)


@pytest.mark.parametrize("command", [["/bin/ls", "-l", "/usr/bin"], ["/usr/bin/python3", "-c", "import json, decimal"]])
def test_real_programs_start_and_end(program, context, allocator, command):
    plain = subprocess.run(command, env=sample.environment({}), capture_output=True, text=True, check=True).stdout
    items = latency.measure(program(*command), context, allocator)
    assert (context.scratch / "stdout").read_text() == plain
    assert all(item["calls"] > 10 for item in items)


def test_a_library_opened_later_may_call_the_operators(program, context, probes):
    """As Python's modules in C++ do: their libstdc++ is not among what the program was started with."""
    (probes / "late.cpp").write_text('extern "C" int late() { int* p = new int(7); int v = *p; delete p; return v; }\n')
    late = probes / "late.so"
    subprocess.run(["c++", "-O0", "-shared", "-fPIC", str(probes / "late.cpp"), "-o", str(late)], check=True)
    python = shutil.which("python3", path="/usr/bin")
    latency.measure(program(python, "-c", f"import ctypes; assert ctypes.CDLL('{late}').late() == 7"), context, GLIBC)


def test_several_runs_in_a_sample_become_one(probes, program, context):
    one = program(str(probes / "probe"), "pairs", "10")
    many = program(str(probes / "probe"), "pairs", "10", times=3)
    calls = [latency.measure(each, context, GLIBC)[0]["calls"] for each in (one, many)]
    assert calls[0] == calls[1]


def test_glibc_under_a_program_that_brings_its_own(program, context):
    items = latency.measure(program("/bin/true", brings_allocator=True), context, GLIBC)
    assert items[0]["allocator"] == "glibc" and items[0]["calls"] >= 0


def test_what_is_measured_is_sane(probes, program, context):
    recorded = latency.record(program(str(probes / "probe"), "pairs", "100000"), context, GLIBC)
    assert 0 < recorded.overhead_ns < 2000 and 0 < recorded.grain_ns <= 100
    for item in latency.summary("probe", "glibc", recorded):
        assert 0 <= item["p50_ns"] <= item["p99_ns"] <= item["p999_ns"] <= item["max_ns"]
        assert 0 < item["p50_ns"] < 5000  # a call of malloc takes nanoseconds, not microseconds
        uppers = [upper for upper, _ in item["histogram"]]
        assert uppers == sorted(set(uppers)) and len(uppers) > 1
        assert item["max_ns"] <= uppers[-1] * 1.001 + 0.01


WHOLE = (
    "annex-latency 1\nticks_per_ns 2.5\noverhead_ns 20.5\ngrain_ns 0.4\nserved malloc /a folder/x.so\n"
    "served free /a folder/x.so\nmax malloc 995.5\nmalloc 10.0 98\nmalloc 100.0 1\nmalloc 1000.0 1\nmax free 0.0\nend\n"
)


def test_the_file_is_read():
    recorded = latency.parse(WHOLE)
    assert (recorded.overhead_ns, recorded.grain_ns) == (20.5, 0.4)
    assert recorded.served_by == {"malloc": "/a folder/x.so", "free": "/a folder/x.so"}
    assert recorded.histogram == {"malloc": [(10.0, 98), (100.0, 1), (1000.0, 1)], "free": []}
    assert recorded.longest == {"malloc": 995.5, "free": 0.0}


@pytest.mark.parametrize("text", ["", "pid 7\n", WHOLE.removesuffix("end\n")])
def test_a_file_that_is_not_whole_is_refused(text):
    with pytest.raises(ValueError, match="whole"):
        latency.parse(text)


def test_percentiles_of_a_known_histogram():
    recorded = dataclasses.replace(latency.parse(WHOLE), grain_ns=0.0)
    shares = {share: latency.percentile(recorded, "malloc", share) for share in ("0.5", "0.98", "0.99", "0.999")}
    assert shares == {"0.5": 10.0, "0.98": 10.0, "0.99": 100.0, "0.999": 995.5}  # at most the longest
    assert latency.percentile(recorded, "free", "0.5") == 0.0


def test_percentiles_lie_within_the_grain_of_a_coarse_clock():
    # 1000 calls of 12 ns read as 10 ns four times in five and as 20 ns else.
    recorded = Recorded(grain_ns=10.0, longest={"malloc": 20.0}, histogram={"malloc": [(10.0, 800), (20.0, 200)]})
    assert latency.percentile(recorded, "malloc", "0.5") == pytest.approx(10 + 10 * (500 / 800 - 0.5))
    assert latency.percentile(recorded, "malloc", "0.8") == pytest.approx(15.0)
    assert latency.percentile(recorded, "malloc", "0.999") == 20.0  # at most the longest
