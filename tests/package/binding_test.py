"""Whose malloc everything calls: binding_test.py CC LIBRARY...

With the library preloaded, whatever refers to a name of the malloc family gets the library's, with the version that the
reference has or without; so does dlsym. Opened late, it gives its own names to who asks it for them, by their version
too, and takes nobody's.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void say(const char* what, void* address) {
  Dl_info info = {0};
  printf("%s=%s\n", what, address && dladdr(address, &info) ? info.dli_fname : "nobody");
}

int main(int argc, char** argv) {
  if (argc > 1) {
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) return puts(dlerror()), 1;
    say("its malloc", dlsym(library, "malloc"));
    say("its version", dlsym(library, "annex_version"));
    say("its version by version", dlvsym(library, "annex_version", "ANNEX_0.1"));
  }
  say("address", (void*)malloc);
  say("dlsym", dlsym(RTLD_DEFAULT, "malloc"));
  say("dlsym of free", dlsym(RTLD_DEFAULT, "free"));
  free(malloc(1));
  free(calloc(1, 1));
  return 0;
}
"""
FAMILY = {"malloc", "free", "calloc", "realloc", "memalign", "aligned_alloc", "posix_memalign", "malloc_usable_size"}


def run(*command, **environment):
    return subprocess.run(
        [str(word) for word in command],
        env={"PATH": os.environ["PATH"], **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )


def told(result):
    return dict(line.split("=", 1) for line in result.stdout.splitlines())


def problems(program, library):
    result = run(program, LD_PRELOAD=library, LD_DEBUG="bindings")
    binding = r"binding file (\S+) \[\d+\] to (\S+) \[\d+\]: normal symbol `(\w+)'(?: \[(.*)\])?"
    bound = re.findall(binding, result.stderr)
    family = [(by, to, name, version) for by, to, name, version in bound if name in FAMILY]
    if not any(version == "GLIBC_2.2.5" or version.startswith("GLIBC_2.17") for *_, version in family):
        yield f"nothing refers to glibc's malloc by version: {family}"
    for by, to, name, _ in family:
        if to != library:
            yield f"{name} of {by} is {to}'s"
    for what, whose in told(result).items():
        if whose != library:
            yield f"preloaded: {what} is {whose}'s"
    late = told(run(program, library))
    for what, whose in late.items():
        if (whose == library) != what.startswith("its"):
            yield f"opened late: {what} is {whose}'s"


failed = False
with tempfile.TemporaryDirectory(prefix="annex-binding-") as scratch:
    program = Path(scratch) / "program"
    subprocess.run([sys.argv[1], "-x", "c", "-", "-fno-builtin", "-o", program], input=PROGRAM, text=True, check=True)
    for library in sys.argv[2:]:
        found = list(problems(program, library))
        failed = failed or bool(found)
        print(f"{library}: {'; '.join(found) or 'as it should be'}")
sys.exit(failed)
