"""Simulated runs, from the command to the results: what the unit tests of sim/ cannot see."""

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import simulator

from annex_lab import paths
from annex_lab.sim import guest, machines, run

pytestmark = simulator.needed


class Simulator:
    def __init__(self, folder: Path):
        self.folder = folder

    def compiled(self, source: str, *flags: str) -> Path:
        file, program = self.folder / "program.c", self.folder / f"program{len(list(self.folder.iterdir()))}"
        file.write_text(source)
        subprocess.run(["cc", "-O1", "-fno-builtin", "-pthread", *flags, file, "-o", program], check=True)
        return program

    def __call__(self, *arguments: object, stdout=subprocess.PIPE) -> tuple[subprocess.CompletedProcess, dict]:
        """Runs annex-lab sim; the process, and the results if there are any."""
        out = self.folder / "out.json"
        out.unlink(missing_ok=True)
        argv = [sys.executable, "-m", "annex_lab.cli", "sim", "--json", out, *arguments]
        done = subprocess.run(
            [str(part) for part in argv], stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=600
        )
        return done, json.loads(out.read_text()) if out.exists() else {}


@pytest.fixture
def sim(tmp_path):
    return Simulator(tmp_path)


def test_counts_what_the_program_does(sim):
    program = sim.compiled(
        "#include <stdlib.h>\n"
        "int main(void) { for (int i = 0; i < 1000; ++i) { void* volatile p = malloc(40); free(p); } return 7; }"
    )
    done, results = sim("--", program)
    assert done.returncode == 7
    assert results["complete"] and results["ended"] == "exit"
    functions = results["allocator"]["functions"]
    assert 1000 <= functions["allocate"]["calls"] <= 1010
    assert 1000 <= functions["free"]["calls"] <= 1010
    assert results["allocator"]["instructions"] < results["instructions"]
    assert results["cycles"] == sum(
        sum(core[who]["cycles"].values()) for core in results["cores"] for who in ("program", "allocator")
    )
    assert "1 thread" in done.stderr and "the allocator's share" in done.stderr


def test_the_stack_is_in_one_place_whatever_is_preloaded(sim):
    program = sim.compiled(
        "#include <stdio.h>\n"
        'int main(int argc, char** argv, char** names) { printf("%p %p %p", &argc, argv, names); return 0; }'
    )
    places = {sim("--allocator", name, "--", program)[0].stdout for name in ("glibc", "annex", "annex-solo")}
    assert len(places) == 1 and places != {""}


THREADS = r"""
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <stdio.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long sum;
static void* work(void* argument) {
  void* kept[64] = {0};
  for (int i = 0; i < 2000; ++i) {
    free(kept[i % 64]);
    kept[i % 64] = malloc(16 + i % 500);
    pthread_mutex_lock(&lock);
    ++sum;
    pthread_mutex_unlock(&lock);
  }
  for (int i = 0; i < 64; ++i) free(kept[i]);
  return argument;
}
int main(int argc, char** argv) {
  int count = atoi(argv[1]);
  pthread_t threads[64];
  for (int i = 0; i < count; ++i) pthread_create(&threads[i], 0, work, 0);
  for (int i = 0; i < count; ++i) pthread_join(threads[i], 0);
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  printf("%ld %ld\n", sum, now.tv_nsec);
}
"""


@pytest.mark.parametrize("allocator", ["glibc", "annex"])
@pytest.mark.parametrize("threads", [1, 4, 16])
def test_the_same_command_gives_the_same_statistics(sim, allocator, threads):
    program = sim.compiled(THREADS)
    runs = [sim("--allocator", allocator, "--threads", threads, "--", program, "{threads}") for _ in range(2)]
    (first, one), (second, two) = runs
    assert first.returncode == second.returncode == 0
    assert first.stdout == second.stdout and first.stdout.startswith(f"{threads * 2000} ")
    assert simulator.without_the_host(one) == simulator.without_the_host(two)
    assert one["threads"] >= threads + 1  # Annex may have a helper
    assert all(core["instructions"] > 0 for core in one["cores"])


def test_where_the_program_writes_to_is_no_part_of_it(sim, tmp_path):
    """C's library asks a terminal's like whether it is one."""
    program = sim.compiled('#include <stdio.h>\nint main(void) { return puts("said") < 0; }')
    with open(tmp_path / "said", "w") as file:
        runs = [sim("--", program, stdout=where) for where in (subprocess.PIPE, subprocess.DEVNULL, file)]
    statistics = [simulator.without_the_host(results) for _, results in runs]
    assert statistics[0] == statistics[1] == statistics[2]
    assert runs[0][0].stdout == (tmp_path / "said").read_text() == "said\n"
    master, terminal = os.openpty()
    _, results = sim("--", program, stdout=terminal)
    os.close(terminal)
    assert os.read(master, 100) == b"said\r\n" and simulator.without_the_host(results) == statistics[0]
    os.close(master)


def test_lock_step_costs_one_thread_the_same(sim):
    program = sim.compiled(
        "#include <stdlib.h>\n"
        "int main(void) {\n"
        "  static void* kept[1000];\n"
        "  for (int i = 0; i < 100000; ++i) {\n"
        "    unsigned at = i * 2654435761u >> 16 & 511;\n"
        "    free(kept[at]);\n"
        "    kept[at] = malloc(16 + at);\n"
        "  }\n"
        "}"
    )
    plain, stepped = (sim(*option, "--", program)[1] for option in ((), ("--lock-step",)))
    assert stepped["lock_step"] and not plain["lock_step"]
    assert stepped["instructions"] == pytest.approx(plain["instructions"], rel=0.005)
    assert stepped["busy_cycles"] == pytest.approx(plain["busy_cycles"], rel=0.005)


PREFETCHES = """
#include <stdlib.h>
enum { kLines = 1 << 15 };
int main(void) {
  volatile char* array = calloc(kLines, 64);
  for (int i = 0; i < kLines; ++i) array[64 * i] = 1;
  int sum = 0;
  unsigned at = 1, ahead = 1;
  for (int i = 0; i < 8; ++i) ahead = ahead * 1103515245 + 12345;
  for (int i = 0; i < 20000; ++i) {
    __builtin_prefetch((const void*)(array + 64 * (ahead % kLines)));
    ahead = ahead * 1103515245 + 12345;
    const int one = array[64 * (at % kLines)];
    at = at * 1103515245 + 12344 + one;  // the next load waits for this one
    sum += one;
  }
  return sum != 20000;
}
"""


def test_software_prefetches_bring_lines_ahead(sim):
    """Each load finds what was asked for eight rounds before."""
    program = sim.compiled(PREFETCHES)
    fetching, ignoring = (sim("--set", f"core.prefetches={what}", "--", program)[1] for what in ("fetch", "ignore"))
    for results in (fetching, ignoring):
        assert results["exit_status"] == 0
        assert results["all"]["program"]["software_prefetches"] == 20000
    waits = [
        sum(results["all"]["program"]["cycles"][of] for of in ("l2", "llc", "tlb")) for results in (fetching, ignoring)
    ]
    assert waits[0] < 0.5 * waits[1]
    assert fetching["cycles"] < ignoring["cycles"] - 20000 * 10


@pytest.mark.parametrize("allocator", ["annex", "annex-solo"])
def test_memory_that_was_moved_is_used_again(sim, allocator):
    """Large blocks, whose pages the allocator moves together: what they leave can be written."""
    done, results = sim("--workload", "malloc-large", "--scale", "0.02", "--allocator", allocator)
    assert done.returncode == 0, done.stderr
    assert results["complete"] and results["system_calls"]["by_number"]["25"] > 0  # mremap


POLLS = r"""
#include <pthread.h>
#include <stdatomic.h>
static _Alignas(64) atomic_long word;
static void* side(void* me) {
  for (long i = (long)me; i < 4000; i += 2) {
    while (atomic_load_explicit(&word, memory_order_acquire) != i) {}
    atomic_store_explicit(&word, i + 1, memory_order_release);
  }
  return 0;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, side, (void*)1);
  side(0);
  pthread_join(thread, 0);
}
"""


def test_threads_that_poll_are_simulated_as_in_lock_step(sim):
    program = sim.compiled(POLLS)  # and the first that polls runs before the other one has started
    plain, stepped = (sim(*option, "--threads", 2, "--", program)[1] for option in ((), ("--lock-step",)))
    assert plain["cycles"] == pytest.approx(stepped["cycles"], rel=0.03)


MISALIGNED = r"""
#include <pthread.h>
#include <stdio.h>
static char line[128] __attribute__((aligned(64)));
static void* work(void* argument) {
  for (int i = 0; i < 200; ++i) __asm__ volatile("lock incl %0" : "+m"(*(int*)(line + 62)));
  return argument;
}
int main(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], 0, work, 0);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], 0);
  printf("%d\n", *(int*)(line + 62));
}
"""


@pytest.mark.parametrize("option", [(), ("--lock-step",)])
def test_locked_instructions_that_qemu_does_alone(sim, option):
    done, results = sim(*option, "--threads", 4, "--", sim.compiled(MISALIGNED))
    assert done.stdout == "800\n" and results["complete"]


def test_another_seed_is_another_run(sim):
    program = sim.compiled(THREADS)
    cycles = {sim("--threads", 4, "--seed", seed, "--", program, 4)[1]["busy_cycles"] for seed in (1, 2, 3)}
    assert len(cycles) > 1


def test_more_threads_than_cores(sim):
    program = sim.compiled(THREADS)
    done, results = sim("--machine", "speedmalloc-2", "--", program, 8)
    assert done.stdout.startswith("16000 ") and results["switches"] > 8


def test_time_is_simulated(sim):
    program = sim.compiled(r"""
#include <stdio.h>
#include <time.h>
#include <unistd.h>
int main(void) {
  struct timespec before, after;
  clock_gettime(CLOCK_MONOTONIC, &before);
  sleep(1000);
  clock_gettime(CLOCK_MONOTONIC, &after);
  printf("%ld\n", after.tv_sec - before.tv_sec);
}
""")
    done, results = sim("--", program)
    assert done.stdout == "1000\n"
    assert results["host_s"] < 20


@pytest.mark.parametrize("clock", ["CLOCK_REALTIME", "CLOCK_MONOTONIC"])
def test_deadlines_are_of_simulated_time(sim, clock):
    program = sim.compiled(
        f"#define CLOCK {clock}\n"
        + r"""
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
int main(void) {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_condattr_t attributes;
  pthread_cond_t changed;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK);
  pthread_cond_init(&changed, &attributes);
  pthread_mutex_lock(&lock);
  struct timespec before, after;
  clock_gettime(CLOCK, &before);
  after = before;
  after.tv_sec += 300;
  int said = pthread_cond_timedwait(&changed, &lock, &after);
  clock_gettime(CLOCK, &after);
  printf("%d %ld\n", said == ETIMEDOUT, (long)(after.tv_sec - before.tv_sec));
}
"""
    )
    done, results = sim("--", program)
    assert done.stdout == "1 300\n"
    assert results["host_s"] < 20


# Of what it waits for outside of the simulation something comes after 0.1 s, then nothing; another thread sleeps.
WAITS = r"""
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static void* sleeps(void* unused) {
  for (;;) sleep(10);
  return unused;
}
static long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}
int main(void) {
  int ends[2];
  char c;
  pthread_t thread;
  if (pipe(ends) != 0) return 1;
  if (fork() == 0) {
    usleep(100000);
    _exit(write(ends[1], "x", 1) != 1);
  }
  pthread_create(&thread, 0, sleeps, 0);
  usleep(1000);
  long before = now();
  if (read(ends[0], &c, 1) != 1) return 2;
  long then = now();
  struct pollfd one = {ends[0], POLLIN, 0};
  if (poll(&one, 1, 200) != 0) return 3;
  printf("%d %ld\n", then - before < 1000, now() - then);
  waitpid(-1, 0, 0);
}
"""


def test_while_the_host_is_waited_for_time_passes_as_it_does_there(sim):
    done, _ = sim("--threads", 2, "--", sim.compiled(WAITS))
    assert done.returncode == 0 and done.stdout == "1 200\n", done.stdout


def test_the_time_stamp_counter_is_the_machines(sim):
    program = sim.compiled(
        "#include <stdio.h>\n#include <time.h>\n#include <x86intrin.h>\n"
        "int main(void) { struct timespec t = {0, 1000000}; unsigned long a = __rdtsc(); nanosleep(&t, NULL);"
        ' unsigned x; printf("%lu\\n", (unsigned long)__rdtscp(&x) - a); }'
    )
    # A millisecond at 2 GHz, and the calls.
    assert 2_000_000 <= int(sim("--machine", "speedmalloc-1", "--", program)[0].stdout) < 2_050_000


def test_restartable_sequences(sim):
    """glibc registers them, so a thread knows its CPU without a call; and time() is answered by the simulation."""
    program = sim.compiled(
        "#define _GNU_SOURCE\n#include <stdio.h>\n#include <sched.h>\n#include <sys/rseq.h>\n#include <time.h>\n"
        "int main(void) { struct rseq* mine = (struct rseq*)((char*)__builtin_thread_pointer() + __rseq_offset);"
        ' printf("%u %d %d %ld\\n", __rseq_size, mine->cpu_id == 0, sched_getcpu(), (long)time(NULL)); }'
    )
    size, same, cpu, seconds = map(int, sim("--", program)[0].stdout.split())
    assert size > 0 and same == 1 and cpu == 0
    assert seconds == 1767225600  # when the simulated machine was switched on


def test_the_program_sees_the_machines_cores(sim):
    assert sim("--machine", "speedmalloc-8", "--", "nproc")[0].stdout == "8\n"
    script = "import os; print(os.cpu_count(), len(os.sched_getaffinity(0)))"
    assert sim("--machine", "speedmalloc-16", "--", "/usr/bin/python3", "-c", script)[0].stdout == "16 16\n"


def test_a_program_that_crashes_leaves_its_statistics(sim):
    program = sim.compiled("#include <stdlib.h>\nint main(void) { free(malloc(9)); *(volatile int*)8 = 1; }")
    done, results = sim("--", program)
    assert done.returncode == 128 + 11
    assert results["ended"] == "signal 11" and not results["complete"]
    assert results["allocator"]["calls"] >= 2
    assert "ended by SIGSEGV" in done.stderr


def test_what_comes_after_exec_is_not_simulated(sim):
    done, results = sim("--", "/bin/sh", "-c", "exec /bin/echo hello")
    assert done.returncode == 3 and done.stdout == "hello\n"
    assert results["ended"] == "exec" and results["replaced_by"] == "/bin/echo"


def test_a_forked_child_runs_on_but_is_not_simulated(sim):
    program = sim.compiled(r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  if (fork() == 0) {
    for (int i = 0; i < 1000; ++i) free(malloc(100));
    _exit(5);
  }
  int status;
  wait(&status);
  return WEXITSTATUS(status);
}
""")
    done, results = sim("--", program)
    assert done.returncode == 5
    assert results["complete"] and results["system_calls"]["forks"] == 1
    assert results["allocator"]["calls"] < 100
    assert "forked" in done.stderr


def test_a_program_that_hangs_is_given_up(sim):
    program = sim.compiled(
        "#include <pthread.h>\n"
        "int main(void) { pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;"
        " pthread_mutex_lock(&m); pthread_mutex_lock(&m); }"
    )
    done, results = sim("--watchdog", 2, "--", program)
    assert done.returncode == 124
    assert results["ended"] == "hang" and results["instructions"] > 1000
    assert "hangs" in done.stderr


# Preloaded into QEMU: from when the program has a descriptor 500 on, the simulator gets no more memory.
NO_MEMORY = r"""
#include <fcntl.h>
#include <stdlib.h>
void throw_bad_alloc(void) __asm__("_ZSt17__throw_bad_allocv");
void* operator_new(size_t size) __asm__("_Znwm");
void* operator_new(size_t size) {
  if (fcntl(500, F_GETFD) >= 0) throw_bad_alloc();
  return malloc(size);
}
"""


@pytest.mark.parametrize("then", ["for (;;) ;", "getppid();"])
def test_an_exception_of_the_simulators_ends_the_run(sim, tmp_path, then):
    """Wherever it is thrown: as results are written, or in a system call."""
    failing = sim.compiled(NO_MEMORY, "-shared", "-fPIC")
    program = sim.compiled("#include <unistd.h>\nint main(void) { dup2(1, 500); " + then + " }")
    machine = machines.find("speedmalloc-1", tmp_path)
    options = f"machine={machine},presets={machines.PRESETS},out={tmp_path / 'out.json'},watchdog=10"
    done = subprocess.run(
        [run.qemu(), "-plugin", f"{run.PLUGIN},{options}", "-U", "LD_PRELOAD", program],
        env={**os.environ, "LD_PRELOAD": f"{run.PLUGIN} {failing}"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == run.DEFECT
    assert done.stderr == "annex-sim: the simulator itself failed: std::bad_alloc\n"


def test_ctrl_c_keeps_what_there_is(sim, tmp_path):
    program = sim.compiled(
        "#include <stdio.h>\n"
        'int main(void) { puts("begun"); fflush(stdout); for (volatile unsigned long i = 0; i < 1ul << 40; ++i) ; }'
    )
    out = tmp_path / "stopped.json"
    argv = [sys.executable, "-m", "annex_lab.cli", "sim", "--json", out, "--", program]
    # Whoever runs the tests in the background may have SIGINT ignored, which children inherit.
    heed = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([str(part) for part in argv], preexec_fn=heed, **pipes) as running:
        try:
            assert running.stdout.readline() == b"begun\n"
            running.send_signal(signal.SIGINT)
            said = running.communicate(timeout=60)[1]
        finally:
            running.kill()
    assert running.returncode == 130, said
    results = json.loads(out.read_text())
    assert results["ended"] == "stopped" and not results["complete"] and results["instructions"] > 1000


def test_standard_input_is_the_programs(sim, tmp_path):
    text = tmp_path / "text"
    text.write_text("b\na\n")
    assert sim("--stdin", text, "--", "sort")[0].stdout == "a\nb\n"


def test_a_script_is_its_interpreter(sim, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/usr/bin/env perl\nprint 6 * 7, qq{\\n};\n")
    script.chmod(0o755)
    assert sim("--", script)[0].stdout == "42\n"


def test_what_cannot_be_simulated(sim, tmp_path):
    static = sim.compiled("int main(void) { return 0; }", "-static")
    foreign = tmp_path / "foreign"
    header = bytearray(Path(shutil.which("true")).read_bytes())
    header[18] = 183
    foreign.write_bytes(header)
    foreign.chmod(0o755)
    text = tmp_path / "notes"
    text.write_text("no program")
    text.chmod(0o755)
    for argument, status, words in [
        (static, 2, "statically linked"),
        (foreign, 2, "AArch64"),
        (text, 2, "not an ELF program"),
        ("no-such-program", 127, "no such program"),
    ]:
        done, results = sim("--", argument)
        assert done.returncode == status and words in done.stderr and not results
        assert len(done.stderr.strip().splitlines()) <= 3


def test_wrong_machines(sim, tmp_path):
    assert sim("--machine", "pentium", "--", "true")[0].returncode == 2
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('base = "haswell-1"\n[l2]\nbytes = 300000\nways = 7\nassociativity = 3\n')
    done, results = sim("--machine", wrong, "--", "true")
    assert done.returncode == 2 and not results
    assert "l2.associativity: no such parameter (line 5)" in done.stderr
    assert sim("--", "true", "--machine")[0].returncode == 0  # after --: the program's own


def test_usage(tmp_path):
    assert guest.command(["true"]) == [shutil.which("true")]
    called = tmp_path / "called"  # what a program of several names does hangs on which of them it is called by
    called.symlink_to(shutil.which("true"))
    assert guest.command([str(called)]) == [str(called)]
    assert machines.for_threads(1) == "speedmalloc-1"
    assert machines.for_threads(3) == "speedmalloc-4"
    assert machines.for_threads(99) == "speedmalloc-64"


def test_the_hosts_machine_is_a_possible_one(tmp_path):
    file = machines.find("host", tmp_path)
    tool = paths.RELEASE / "annex-machine"
    done = subprocess.run([tool, "--presets", machines.PRESETS, file], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["cores"] >= 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "name either --workload or, after --, a program"),
        (["--workload", "gap-bfs", "--", "true"], "--workload gap-bfs is the program"),
        (["--workload", "ls", "--", "--vertices", "9"], "ls takes no options after --"),
        (["--workload", "gap-bfs", "--", "--slots", "9"], "gap-bfs: --slots is not an option here"),
        (["--workload", "gap-bfs", "--", "--vertices=few"], "gap-bfs: --vertices needs a number"),
        (["--workload", "gap-bfs", "--", "--scale=1"], "gap-bfs: --scale is given twice"),
    ],
)
def test_what_is_no_workloads_option_is_said_before_the_run(sim, arguments, says):
    done, results = sim(*arguments)
    assert done.returncode == 2 and not results
    assert f"annex-lab sim: {says}" in done.stderr and len(done.stderr.splitlines()) <= 2


def test_a_workloads_options_are_in_the_results(sim):
    done, results = sim("--workload", "larson", "--scale", "0.0001", "--", "--slots", 50, "--max=64")
    assert done.returncode == 0, done.stderr
    assert results["command"] == ["larson", "--scale", "0.0001", "--threads", "1", "--slots", "50", "--max=64"]
    assert results["workload_options"] == ["--slots", "50", "--max=64"]


@pytest.mark.parametrize("allocator", ["annex", "annex-solo", "annex-offload"])
def test_under_our_flavours(sim, allocator):
    done, results = sim("--workload", "hashmap", "--allocator", allocator, "--", "--entries", 3000)
    assert done.returncode == 0 and results["complete"]
    assert any("libannex" in file for file in results["allocator"]["files"])
