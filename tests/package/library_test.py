"""What the dynamic loader sees in the libraries: library_test.py LIBRARY...

They need libc and nothing else, so that they can be preloaded into any program; their thread-local storage is small
and in the static block, so that access is one instruction and dlopen still finds room for it; and they export the
malloc family, the calls that change what threads may do, and annex_*, and nothing of their inside.
"""

import re
import subprocess
import sys

ALLOWED = re.compile(r"(libc\.so\.6|ld-linux[-\w]*\.so\.\d)$")
TLS_LIMIT = 64  # bytes; the loader keeps some hundreds spare for libraries that are opened late

FAMILY = """aligned_alloc calloc cfree free free_aligned_sized free_sized mallinfo mallinfo2 malloc malloc_info
malloc_stats malloc_trim malloc_usable_size mallopt memalign posix_memalign pvalloc realloc
reallocarray valloc""".split()
PRIVILEGES = "capset prctl setns syscall unshare".split()  # src/entry/privileges.cpp
PUBLIC = re.compile(r"(annex_\w+|__libc_\w+|__posix_memalign|_Zn[wa]\w+|_Zd[la]\w+)$")


def readelf(option, library):
    return subprocess.run(["readelf", "-W", option, library], capture_output=True, text=True, check=True).stdout


def problems(library):
    dynamic = readelf("-d", library)
    for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
        if not ALLOWED.match(needed):
            yield f"needs {needed}"
    if "TEXTREL" in dynamic:
        yield "has text relocations"
    if "RPATH" in dynamic or "RUNPATH" in dynamic:
        yield "has a run path"
    segments = readelf("-l", library)
    tls = re.search(r"^\s*TLS\s+\S+\s+\S+\s+\S+\s+\S+\s+(\S+)", segments, re.MULTILINE)
    if tls:
        if int(tls[1], 16) >= TLS_LIMIT:
            yield f"has {int(tls[1], 16)} bytes of thread-local storage; the limit is {TLS_LIMIT}"
        if "STATIC_TLS" not in dynamic:
            yield "has thread-local storage that is not initial-exec"
    if not re.search(r"GNU_STACK\s.*\sRW\s", segments):
        yield "wants an executable stack"
    symbols = [line.split() for line in readelf("--dyn-syms", library).splitlines() if re.match(r"\s+\d+:", line)]
    exported = {row[7].split("@")[0] for row in symbols if row[6] != "UND" and row[4] != "LOCAL"}
    known = set(FAMILY + PRIVILEGES)
    for name in sorted(known - exported):
        yield f"does not export {name}"
    for name in sorted(exported - known):
        if not PUBLIC.match(name):
            yield f"exports {name}"


failed = False
for library in sys.argv[1:]:
    found = list(problems(library))
    failed = failed or bool(found)
    print(f"{library}: {'; '.join(found) or 'as it should be'}")
sys.exit(failed)
