"""How each peer is compiled: one recipe a peer, each with its upstream's own release settings and the system compiler.

A recipe gets a private copy of the package (work), the number of compile jobs, and run(command, cwd); it returns the
files that it left: the library to preload, then its companions, which the library finds beside itself by their names.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import full_gperftools
import marked_gperftools
import steps


@dataclass(frozen=True)
class Recipe:
    flags: str  # as the README's table shows them
    build: Callable[[Path, int, Callable], list[Path]]
    env: dict[str, str] = field(default_factory=dict)  # what upstream says a program needs for it to work as intended
    compiled_here: bool = True  # else its makers or the distribution did
    depends: Callable[[], list[str]] = list  # texts beside the recipe that the library depends on


JEMALLOC_LABEL = "5.3.1-0-g81034ce1f1373e37dc865038e1bc8eeecf559ce8"


def cmake_library(source, options, target, jobs, run):
    """Configures and builds one target of an upstream CMake project; returns the build folder."""
    out = source / "out"
    run(["cmake", "-G", "Ninja", "-S", source, "-B", out, "-DCMAKE_BUILD_TYPE=Release", *options], source)
    run(["cmake", "--build", out, "--target", target, "-j", jobs], source)
    return out


def jemalloc(work, jobs, run, *options):
    # The crate keeps the generated configure beside the sources, because upstream's releases have it and git does not.
    source = work / "jemalloc"
    (source / "configure").write_bytes((work / "configure" / "configure").read_bytes())
    # --with-version is the label that git would give: the package has no git folder to ask.
    run(["sh", "configure", "--disable-static", "--disable-doc", f"--with-version={JEMALLOC_LABEL}", *options], source)
    run(["make", "-j", jobs, "build_lib_shared"], source)
    return [source / "lib" / "libjemalloc.so.2"]


def jemalloc_with_profiles(work, jobs, run):
    return jemalloc(work, jobs, run, "--enable-prof")


def mimalloc(folder, secure=False):
    def recipe(work, jobs, run):
        options = ["-DMI_BUILD_STATIC=OFF", "-DMI_BUILD_OBJECT=OFF", "-DMI_BUILD_TESTS=OFF"]
        options += ["-DMI_SECURE=ON"] if secure else []
        built = cmake_library(work / "c_src" / folder, options, "mimalloc", jobs, run)
        return [built / ("libmimalloc-secure.so" if secure else "libmimalloc.so")]

    return recipe


def snmalloc(target, *more):
    def recipe(work, jobs, run):
        options = ["-DSNMALLOC_BUILD_TESTING=OFF", "-DSNMALLOC_STATIC_LIBRARY=OFF", *more]
        return [cmake_library(work / "upstream", options, target, jobs, run) / f"lib{target}.so"]

    return recipe


def rpmalloc(work, jobs, run):
    # The settings of upstream's own generator for its library "rpmallocwrap", release configuration.
    source = work / "rpmalloc" / "rpmalloc"
    library = source / "librpmallocwrap.so"
    defines = ["-DENABLE_PRELOAD=1", "-DENABLE_OVERRIDE=1", "-DBUILD_RELEASE=1", "-DBUILD_DYNAMIC_LINK=1", "-DNDEBUG"]
    flags = ["-std=c11", "-D_GNU_SOURCE=1", "-O3", "-g", "-funroll-loops", "-fPIC", "-ftls-model=initial-exec"]
    run(["cc", *flags, *defines, "-shared", "-pthread", source / "rpmalloc.c", "-o", library, "-ldl"], source)
    return [library]


# Its caches are per CPU, by restartable sequences; a thread can register only one user of those, and glibc comes first.
TCMALLOC_ENV = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}


# tcmalloc leaves huge pages to the kernel's setting "always" and asks for none itself, and nothing that can be set from
# outside changes that. Here every piece of address space that it reserves is marked as wanting them.
ASK_FOR_HUGE_PAGES = r"""
#include <errno.h>
#include <sys/mman.h>

void* __real_mmap(void* hint, size_t size, int protection, int flags, int file, off_t offset);

void* __wrap_mmap(void* hint, size_t size, int protection, int flags, int file, off_t offset) {
  void* memory = __real_mmap(hint, size, protection, flags, file, offset);
  if (memory != MAP_FAILED && (flags & MAP_ANONYMOUS) != 0 && size >= (2u << 20)) {
    const int saved = errno;
    madvise(memory, size, MADV_HUGEPAGE);
    errno = saved;
  }
  return memory;
}
"""


# Of allocations one in 2 MiB is sampled, at random; how often can be set by a program, and not from outside.
UNSAMPLED = {
    "c_src/tcmalloc/tcmalloc/parameters.cc": [
        (
            "Parameters::profile_sampling_interval_(\n    kDefaultProfileSamplingInterval);",
            "Parameters::profile_sampling_interval_(\n    int64_t{1} << 34);",
        )
    ],
}


def tcmalloc(ask_for_huge_pages=False, changes=None):
    def recipe(work, jobs, run):
        steps.change_once(work, changes or {})
        # Upstream builds with Bazel, the crate with a list of sources of its own; that list, and malloc itself, which
        # the crate leaves out, go through CMake here.
        listed = re.findall(r'"(c_src/[^"]+[.](?:cc|S))"', (work / "build.rs").read_text())
        sources = {one for one in listed if "bridge" not in one} | {"c_src/tcmalloc/tcmalloc/tcmalloc.cc"}
        link = "pthread"
        if ask_for_huge_pages:
            (work / "ask_for_huge_pages.c").write_text(ASK_FOR_HUGE_PAGES)
            sources, link = sources | {"ask_for_huge_pages.c"}, "pthread -Wl,--wrap=mmap"
        (work / "CMakeLists.txt").write_text(f"""
cmake_minimum_required(VERSION 3.22)
project(tcmalloc LANGUAGES C CXX ASM)
set(CMAKE_CXX_STANDARD 17)
add_library(tcmalloc SHARED {" ".join(sorted(sources))})
target_include_directories(tcmalloc PRIVATE c_src/abseil-cpp c_src/tcmalloc)
target_compile_definitions(tcmalloc PRIVATE NOMINMAX TCMALLOC_INTERNAL_8K_PAGES)
target_compile_options(tcmalloc PRIVATE -w -ftls-model=initial-exec)
target_link_libraries(tcmalloc PRIVATE {link})
""")
        return [cmake_library(work, [], "tcmalloc", jobs, run) / "libtcmalloc.so"]

    return recipe


def gperftools(work, jobs, run):
    options = ["-Dgperftools_build_minimal=ON", "-DGPERFTOOLS_BUILD_STATIC=OFF", "-DBUILD_TESTING=OFF"]
    options += ["-Dgperftools_build_benchmark=OFF"]
    return [cmake_library(work, options, "tcmalloc_minimal", jobs, run) / "libtcmalloc_minimal.so"]


def gperftools_marked(work, jobs, run):
    marked_gperftools.mark(work)
    return gperftools(work, jobs, run)


def gperftools_full(work, jobs, run):
    full_gperftools.change(work)
    return gperftools(work, jobs, run)


def tbb(work, _jobs, run):
    # Compiled by upstream. The proxy has the malloc names and needs the library with the allocator; as shipped it finds
    # that only on the library path of whoever starts the program.
    folder = next(work.glob("*.data")) / "data" / "lib"
    proxy, allocator = folder / "libtbbmalloc_proxy.so.2", folder / "libtbbmalloc.so.2"
    run(["patchelf", "--set-rpath", "$ORIGIN", proxy], work)
    return [proxy, allocator]


def scudo(work, _jobs, _run):
    return [next(work.glob("usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.scudo_standalone-x86_64.so"))]


# C11's name for memalign came after dlmalloc's last version. Left to glibc, its blocks would reach dlmalloc's free.
DLMALLOC_ALIGNED_ALLOC = """
#include <stddef.h>

void* memalign(size_t alignment, size_t size);

void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
"""


def dlmalloc(work, _jobs, run):
    # The crate's copy is Doug Lea's file with changes for systems without libc, all of them under #ifdef PORTABLE.
    library, more = work / "libdlmalloc.so", work / "aligned_alloc.c"
    more.write_text(DLMALLOC_ALIGNED_ALLOC)
    # A compiler that knows malloc makes its calloc, malloc and then memset, into a call of calloc: itself.
    flags = ["-O3", "-fno-builtin-malloc", "-fPIC", "-DUSE_LOCKS=1", "-DNDEBUG", "-w"]
    run(["cc", *flags, "-shared", "-pthread", work / "malloc.c", more, "-o", library], work)
    return [library]


RECIPES = {
    "jemalloc": Recipe("configure's defaults: -O3 -funroll-loops, initial-exec TLS, C++ operators", jemalloc),
    # For an experiment: what a heap profile costs.
    "jemalloc-prof": Recipe("configure with --enable-prof, else as jemalloc", jemalloc_with_profiles),
    "mimalloc2": Recipe("CMake Release: -O3 -DNDEBUG, MI_OVERRIDE=ON, initial-exec TLS", mimalloc("mimalloc")),
    "mimalloc3": Recipe("CMake Release: -O3 -DNDEBUG, MI_OVERRIDE=ON, initial-exec TLS", mimalloc("mimalloc3")),
    "mimalloc3-secure": Recipe(
        "CMake Release: -O3 -DNDEBUG, MI_SECURE=ON, MI_OVERRIDE=ON, initial-exec TLS",
        mimalloc("mimalloc3", secure=True),
    ),
    "snmalloc": Recipe(
        "CMake Release, target snmallocshim: -O3 -DNDEBUG -mcx16, initial-exec TLS", snmalloc("snmallocshim")
    ),
    "snmalloc-checks": Recipe(
        "CMake Release, target snmallocshim-checks: the same, with every check", snmalloc("snmallocshim-checks")
    ),
    # For an experiment: upstream's own setting for a thread without BatchIt's cache of what it freed of others' slabs.
    "snmalloc-unbatched": Recipe(
        "CMake Release, target snmallocshim with SNMALLOC_DEALLOC_BATCH_RING_ASSOC=0: the same, without BatchIt",
        snmalloc("snmallocshim", "-DSNMALLOC_DEALLOC_BATCH_RING_ASSOC=0"),
    ),
    "snmalloc-checks-unbatched": Recipe(
        "CMake Release, target snmallocshim-checks with SNMALLOC_DEALLOC_BATCH_RING_ASSOC=0: every check, no BatchIt",
        snmalloc("snmallocshim-checks", "-DSNMALLOC_DEALLOC_BATCH_RING_ASSOC=0"),
    ),
    "rpmalloc": Recipe("-O3 -funroll-loops -DNDEBUG -DENABLE_PRELOAD -DENABLE_OVERRIDE, initial-exec TLS", rpmalloc),
    "tcmalloc": Recipe("CMake Release: -O3 -DNDEBUG, 8 KiB pages, initial-exec TLS", tcmalloc(), TCMALLOC_ENV),
    "tcmalloc-thp": Recipe(
        "CMake Release: -O3 -DNDEBUG, 8 KiB pages, initial-exec TLS; mmap wrapped with madvise(MADV_HUGEPAGE)",
        tcmalloc(ask_for_huge_pages=True),
        TCMALLOC_ENV,
    ),
    "tcmalloc-unsampled": Recipe(
        "CMake Release: the same, sampling one allocation in 16 GiB", tcmalloc(changes=UNSAMPLED), TCMALLOC_ENV
    ),
    "gperftools": Recipe("CMake Release, target tcmalloc_minimal: -O3 -DNDEBUG", gperftools),
    "gperftools-marked": Recipe(
        "CMake Release, target tcmalloc_minimal with sampling and markers: -O3 -DNDEBUG",
        gperftools_marked,
        depends=marked_gperftools.identity,
    ),
    "gperftools-marked-full": Recipe(
        "CMake Release, target tcmalloc_minimal with sampling and markers, without its fast path: -O3 -DNDEBUG",
        gperftools_full,
        depends=full_gperftools.identity,
    ),
    "tbb": Recipe("compiled by upstream (oneAPI's wheel); run path $ORIGIN added", tbb, compiled_here=False),
    "scudo": Recipe(
        "compiled by Debian with clang: the standalone Scudo of LLVM's compiler-rt", scudo, compiled_here=False
    ),
    "dlmalloc": Recipe("-O3 -fno-builtin-malloc -DUSE_LOCKS=1 -DNDEBUG; aligned_alloc added, as memalign", dlmalloc),
}
