"""The same command, the same statistics, on every host: nothing that a program finds is the host's.

same_everywhere.json holds what same_everywhere.s takes on each machine. Where the model has changed, and was meant to,
`.venv/bin/python lab/tests/test_same_everywhere.py` writes it anew.
"""

import hashlib
import json
import os
import resource
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
import simulator
from test_sim import Simulator

from annex_lab.sim import machines, run, surroundings

HERE = Path(__file__).parent
KEPT = HERE / "same_everywhere.json"
# Where it lies, and what lies around it, are not left to the linker.
LAYOUT = ["-static", "--build-id=none", "-znoseparate-code", "-zmax-page-size=4096"]
LAYOUT += ["-Ttext=0x10000000", "-Tdata=0x10010000"]
CORES = "speedmalloc-4"  # that a hardware unit is beside


def assembled(folder: Path) -> Path:
    subprocess.run(["as", "-o", folder / "program.o", HERE / "same_everywhere.s"], check=True)
    subprocess.run(["ld", *LAYOUT, "-o", folder / "program", folder / "program.o"], check=True)
    return folder / "program"


def everything() -> list[str]:
    """Each preset, but the host's own, and each hardware unit."""
    names = [name for name in machines.presets() if name != machines.HOST]
    return names + [f"{CORES} {unit}" for unit in machines.hardware()]


def taken(name: str, folder: Path) -> dict:
    preset, _, unit = name.partition(" ")
    machine = machines.find(preset, folder)
    if unit:
        machine = machines.changed(machine, unit, [], folder)
    done = run.run(run.Guest([str(assembled(folder))]), machine, folder / "scratch")
    assert done.status == 0 and done.results["complete"]
    kept = simulator.without_the_host(done.results)
    text = json.dumps(kept, sort_keys=True).replace(str(folder), "")  # whose malloc it is
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {"cycles": kept["cycles"], "instructions": kept["instructions"], "all": digest[:16]}


@simulator.needed
@pytest.mark.parametrize("name", everything())
def test_a_program_takes_on_each_machine_what_it_took_elsewhere(tmp_path, name):
    assert taken(name, tmp_path) == json.loads(KEPT.read_text()).get(name)


def test_what_is_kept_is_of_machines_that_there_are():
    assert set(json.loads(KEPT.read_text())) == set(everything())


FINDS = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/syscall.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <unistd.h>
static void show(const char* path) {
  char text[256] = "";
  FILE* file = fopen(path, "r");
  if (file == NULL || fgets(text, sizeof text, file) == NULL) strcpy(text, "-\n");
  printf("%s %s", path, text);
  if (file != NULL) fclose(file);
}
int main(void) {
  struct utsname name;
  uname(&name);
  printf("%s %s %s %s\n", name.nodename, name.release, name.version, name.machine);
  struct sysinfo memory;
  sysinfo(&memory);
  printf("%lu %lu %d\n", memory.uptime, memory.totalram * memory.mem_unit, memory.procs);
  unsigned char cpus[128];
  printf("%ld", syscall(SYS_sched_getaffinity, 0, sizeof cpus, cpus));
  printf(" %d\n", cpus[0]);
  struct rlimit stack, files;
  getrlimit(RLIMIT_STACK, &stack);
  getrlimit(RLIMIT_NOFILE, &files);
  printf("%lu %lu\n", stack.rlim_cur, files.rlim_cur);
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf("%ld %ld %d\n", usage.ru_utime.tv_sec, usage.ru_minflt, usage.ru_maxrss < 4096);
  struct tms times_;
  printf("%ld\n", (long)times(&times_));
  unsigned header[6] = {0};
  FILE* cache = fopen("/etc/ld.so.cache", "r");
  fread(header, sizeof header, 1, cache);
  printf("%u libraries\n", header[5]);
  show("/proc/meminfo");
  show("/proc/self/cgroup");
  show("/proc/sys/vm/overcommit_memory");
  show("/sys/fs/cgroup/cpu.max");
  show("/sys/kernel/mm/transparent_hugepage/enabled");
  show("/sys/devices/system/node/online");
  show("/sys/devices/system/cpu/online");
  show("/sys/devices/system/cpu/cpu3/cache/index3/shared_cpu_list");
  show("/etc/ld.so.preload");
}
"""


@simulator.needed
def test_what_a_program_finds_is_the_machines(tmp_path):
    sim = Simulator(tmp_path)
    done, _ = sim("--machine", "speedmalloc-4", "--", sim.compiled(FINDS))
    assert done.stdout.splitlines() == [
        "simulated 6.1.0 #1 SMP x86_64",
        f"1000 {64 << 30} 1",
        "8 15",
        f"{8 << 20} 1024",
        "0 0 1",
        "100000",
        "1 libraries",
        f"/proc/meminfo MemTotal:       {64 << 20} kB",
        "/proc/self/cgroup 0::/",
        "/proc/sys/vm/overcommit_memory 0",
        "/sys/fs/cgroup/cpu.max max 100000",
        "/sys/kernel/mm/transparent_hugepage/enabled always [madvise] never",
        "/sys/devices/system/node/online 0",
        "/sys/devices/system/cpu/online 0-3",
        "/sys/devices/system/cpu/cpu3/cache/index3/shared_cpu_list 0-3",
        "/etc/ld.so.preload -",
    ]


PLACES = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void* work(void* none) {
  char here;
  printf("%p %p %p ", (void*)&here, malloc(10), (void*)printf);
  return none;
}
int main(int argc, char** argv) {
  pthread_t thread;
  pthread_create(&thread, NULL, work, NULL);
  pthread_join(thread, NULL);
  printf("%p %p\n", (void*)&argc, (void*)argv);
}
"""


@simulator.needed
def test_the_callers_limits_and_folder_move_nothing(tmp_path):
    sim = Simulator(tmp_path)
    program = sim.compiled(PLACES)
    usual, results = sim("--", program)
    for limit, soft in ((resource.RLIMIT_STACK, 24 << 20), (resource.RLIMIT_NOFILE, 512)):
        before = resource.getrlimit(limit)
        if before[1] != resource.RLIM_INFINITY and before[1] < soft:
            continue
        resource.setrlimit(limit, (soft, before[1]))
        try:
            again, results_again = sim("--", program)
        finally:
            resource.setrlimit(limit, before)
        assert again.stdout == usual.stdout != ""
        assert simulator.without_the_host(results_again) == simulator.without_the_host(results)
    elsewhere = tmp_path / ("a-folder-of-another-length" * 3) / program.name
    elsewhere.parent.mkdir()
    shutil.copy(program, elsewhere)
    assert sim("--", elsewhere)[0].stdout == usual.stdout


ROOM = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
int main(void) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* map = mmap(NULL, (size_t)256 << 30, PROT_READ | PROT_WRITE, flags, -1, 0);  // as snmalloc, for its pages
  void* tag = (void*)0x200000000000;  // as TCMalloc: what a block is is in the upper bits of its address
  printf("%d %d\n", map != MAP_FAILED,
         mmap(tag, (size_t)1 << 30, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0) == tag);
}
"""


@simulator.needed
def test_there_is_room_for_what_allocators_map(tmp_path):
    sim = Simulator(tmp_path)
    done, _ = sim("--", sim.compiled(ROOM))
    assert done.stdout == "1 1\n"


def test_the_linkers_cache_has_the_linkers_order(tmp_path):
    names = ["liba.so", "libm.so.6", "libm.so.10", "libm-2.so", "libzstd.so.1", "libb.so"]
    file = tmp_path / "cache"
    file.write_bytes(surroundings.linker_cache({name: f"/lib/{name}" for name in names}))
    shown = subprocess.run(
        ["ldconfig", "-p", "-C", file],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"},
    ).stdout.splitlines()
    assert [line.strip() for line in shown[1:7]] == [
        f"{name} (libc6,x86-64) => /lib/{name}"
        for name in ("libzstd.so.1", "libm.so.10", "libm.so.6", "libm-2.so", "libb.so", "liba.so")
    ]


def test_environment_and_command_take_the_same_room():
    def room(environment: dict[str, str], argv: list[str]) -> int:
        whole = environment | surroundings.padding(environment, argv)
        strings = [f"{name}={value}" for name, value in whole.items()] + [argv[0], *argv]
        assert len(whole) == 32
        return sum(len(text) + 1 for text in strings)

    assert {room({"A": "b" * size}, ["/p" * size, "x"]) for size in (1, 20, 300)} == {4096}


if __name__ == "__main__":
    every = {}
    for each in everything():
        with tempfile.TemporaryDirectory() as where:
            every[each] = taken(each, Path(where))
    KEPT.write_text(json.dumps(every, indent=1) + "\n")
