"""What the dynamic loader sees in the libraries: library_test.py LIBRARY...

They need libc and nothing else, so that they can be preloaded into any program; their thread-local storage is small
and in the static block, so that access is one instruction and dlopen still finds room for it; and they export the
malloc family, the calls that change what threads may do, dlopen, and annex_*, and nothing of their inside. What is
annex.h's has a version, and nothing else has (src/symbols.map); who links the library asks for it by a name with a
number.
"""

import re
import subprocess
import sys
from pathlib import Path

ALLOWED = re.compile(r"(libc\.so\.6|ld-linux[-\w]*\.so\.\d)$")
TLS_LIMIT = 64  # bytes; the loader keeps some hundreds spare for libraries that are opened late

FAMILY = """aligned_alloc calloc cfree free free_aligned_sized free_sized mallinfo mallinfo2 malloc malloc_info
malloc_stats malloc_trim malloc_usable_size mallopt memalign posix_memalign pvalloc realloc
reallocarray valloc""".split()
JEMALLOC = "dallocx mallocx nallocx rallocx sallocx sdallocx xallocx".split()  # src/entry/jemalloc.cpp
PRIVILEGES = "capset prctl setns syscall unshare".split()  # src/entry/privileges.cpp
LOADING = "dlmopen dlopen".split()  # src/entry/loading.cpp
PUBLIC = re.compile(r"(ANNEX_[0-9.]+|annex_\w+|__libc_\w+|__posix_memalign|_Zn[wa]\w+|_Zd[la]\w+)$")

# What the libraries call, and when (docs/architecture.md, "What is called of the C library"). With a lock held, or
# while a thread's lists are being changed, only those that the compiler itself calls.
BY_THE_COMPILER = "memcmp memcpy memmove memset __tls_get_addr __errno_location".split()
AT_START = "environ __environ __register_atfork getauxval sigaction".split()
OF_THE_ENVIRONMENT = "strchr strcmp strcpy strcspn strlen strncmp strrchr strspn".split()
OF_HELPER_THREADS = """pthread_attr_destroy pthread_attr_init pthread_attr_setstacksize pthread_create pthread_join
pthread_setcancelstate pthread_sigmask pthread_tryjoin_np sigemptyset sigfillset""".split()
OF_THREADS = "pthread_key_create pthread_key_delete pthread_setspecific __libc_single_threaded".split()
OF_FORK = "_IO_list_lock _IO_list_resetlock _IO_list_unlock".split()
OF_ALIGNED_ALLOC = ["gnu_get_libc_version"]  # and of solo's start
OF_REPORTS = "backtrace backtrace_symbols_fd fprintf getpid raise".split()
OF_PROFILES = "_dl_find_object dl_iterate_phdr _r_debug strerrordesc_np".split()  # with a heap profile alone
OF_CPP = "dlsym __gxx_personality_v0 __cxa_begin_catch __cxa_end_catch _ZSt15get_new_handlerv _ZSt17__throw_bad_allocv"
OF_THE_LINKER = "_ITM_deregisterTMCloneTable _ITM_registerTMCloneTable __cxa_finalize __gmon_start__".split()
IMPORTS = set(
    BY_THE_COMPILER
    + AT_START
    + OF_THE_ENVIRONMENT
    + OF_HELPER_THREADS
    + OF_THREADS
    + OF_FORK
    + OF_ALIGNED_ALLOC
    + OF_REPORTS
    + OF_PROFILES
    + OF_CPP.split()
    + OF_THE_LINKER
)


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
    soname = re.search(r"\(SONAME\).*\[(.*)\]", dynamic)
    if not soname or not re.fullmatch(r"libannex(-\w+)?\.so\.\d+", soname[1]):
        yield f"has the name {soname and soname[1]}, without a number"
    elif (Path(library).parent / soname[1]).resolve() != Path(library).resolve():
        yield f"is not what {soname[1]} beside it is"
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
    for row in symbols:
        name, _, version = row[-1].partition("@@")
        if row[6].isdigit() and name.startswith("annex_") != bool(re.fullmatch(r"ANNEX_\d+\.\d+", version)):
            yield f"exports {row[-1]}"
    for name in sorted({row[7].split("@")[0] for row in symbols if len(row) > 7 and row[6] == "UND"} - IMPORTS - {""}):
        yield f"calls {name}"
    known = set(FAMILY + JEMALLOC + PRIVILEGES + LOADING)
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
