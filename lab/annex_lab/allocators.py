"""The allocators by name: where the library is, which version, how it is run, and whether it is there.

Three kinds: Annex's flavours (OURS), other allocators as their makers ship them (PEERS, the everyday ones of them in
CORE), and peers that are told to use huge pages, or not to (VARIANTS), for a comparison of like with like. LADDER holds
the offload flavour's protocols, step by step. FLOOR is no allocator but a bound: how much there is to gain.
"""

import dataclasses
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from annex_lab import native, paths, sample

OURS = ("annex-solo", "annex", "annex-offload")
HARDENED = "annex-hardened"  # a build for programs under attack: in no group, as it is not made for speed
CORE = ("glibc", "jemalloc", "mimalloc2", "mimalloc3", "snmalloc", "rpmalloc", "tcmalloc")
PEERS = (*CORE, "mimalloc3-secure", "snmalloc-checks", "gperftools", "tbb", "scudo", "dlmalloc")

RELEASE_FLAGS = "CMake preset release: -O3 -DNDEBUG, hidden symbols, no exceptions, bound at start (-z now)"


@dataclass(frozen=True)
class Variant:
    base: str  # the library: a flavour of ours, or what peers/build makes, a peer or the variant's own
    env: dict[str, str]
    what: str


VARIANTS_OF = {
    "glibc-thp": Variant("glibc", {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}, "glibc asking for huge pages"),
    "jemalloc-thp": Variant("jemalloc", {"MALLOC_CONF": "thp:always"}, "jemalloc asking for huge pages"),
    "tcmalloc-thp": Variant(
        "tcmalloc-thp", {}, "tcmalloc asking for huge pages: it has no setting for that, so its mmap is wrapped"
    ),
    "mimalloc2-nothp": Variant("mimalloc2", {"MIMALLOC_ALLOW_THP": "0"}, "mimalloc 2 in a process without huge pages"),
    "mimalloc3-nothp": Variant("mimalloc3", {"MIMALLOC_ALLOW_THP": "0"}, "mimalloc 3 in a process without huge pages"),
}
VARIANTS = tuple(VARIANTS_OF)
# The steps from NextGen-Malloc's protocol to ours: each is the one before it with one thing less to wait for.
STEPS_OF = {
    "annex-offload-handshake": Variant(
        "annex-offload", {"ANNEX_PROTOCOL": "handshake"}, "each call waits for the support core (NextGen-Malloc)"
    ),
    "annex-offload-queue": Variant(
        "annex-offload", {"ANNEX_PROTOCOL": "queue"}, "malloc waits for the support core, free does not"
    ),
}
LADDER = ("annex", *STEPS_OF, "annex-offload")
# Annex with other caches of open batches (src/experiments/experiments.cmake): targets annex-batches-...-shared.
OPEN_BATCHES_OF = {
    f"annex-batches-{cache}": Variant(f"annex-batches-{cache}", {}, f"Annex with another cache of open batches: {what}")
    for cache, what in {
        "8x2": "8 sets of 2 ways, the paper's",
        "16x2": "16 sets of 2 ways",
        "256x2": "256 sets of 2 ways",
        "128x1": "128 sets of 1 way",
        "32x4": "32 sets of 4 ways",
        "recent": "the batch used longest ago makes room",
        "random": "any batch makes room",
        "low-bits": "a slab's set is its number modulo 64",
    }.items()
}
# The hardened build with one measure left out (src/experiments/experiments.cmake): targets
# annex-hardened-without-...-shared.
HARDENED_WITHOUT_OF = {
    f"annex-hardened-without-{measure}": Variant(
        f"annex-hardened-without-{measure}", {}, f"hardened Annex without {what}"
    )
    for measure, what in {
        "canaries": "canaries",
        "zeroing": "zeroing what is freed",
        "checks": "looking whether what is handed out is still zero",
        "quarantine": "quarantine",
        "guards": "guard pages, and large blocks that wait",
        "shuffling": "random order in slabs",
        "seals": "encoded links",
    }.items()
}
# Peers with one setting changed, for experiments on what a setting does: in no group, as nobody ships them so.
EXPERIMENTS_OF = {
    "jemalloc-1-arena": Variant("jemalloc", {"MALLOC_CONF": "narenas:1"}, "jemalloc whose threads share one arena"),
    "jemalloc-no-purge": Variant(
        "jemalloc", {"MALLOC_CONF": "dirty_decay_ms:-1,muzzy_decay_ms:-1"}, "jemalloc that gives no pages back"
    ),
    "tcmalloc-unsampled": Variant("tcmalloc-unsampled", {}, "tcmalloc that samples one allocation in 16 GiB"),
    "snmalloc-unbatched": Variant("snmalloc-unbatched", {}, "snmalloc built without BatchIt"),
    "gperftools-marked": Variant("gperftools-marked", {}, "gperftools with sampling, and markers for Mallacc"),
    "gperftools-marked-full": Variant(
        "gperftools-marked-full", {}, "the same, with every malloc on the way that upstream keeps for uncommon cases"
    ),
    "annex-sampled": Variant(
        "annex",
        {"ANNEX_SAMPLE": "100", "ANNEX_BACKTRACE": "1"},
        "Annex with 100 blocks a second between guard pages, and call stacks",
    ),
    "annex-profiled": Variant("annex", {"ANNEX_PROFILE": "/dev/null"}, "Annex with a heap profile: 512 KiB a sample"),
    "annex-solo-profiled": Variant(
        "annex-solo", {"ANNEX_PROFILE": "/dev/null"}, "the same of its flavour for one thread"
    ),
    "annex-offload-profiled": Variant("annex-offload", {"ANNEX_PROFILE": "/dev/null"}, "the same of offload"),
    "annex-hardened-profiled": Variant(
        "annex-hardened", {"ANNEX_PROFILE": "/dev/null"}, "the same of the hardened build"
    ),
    "jemalloc-profiled": Variant(
        "jemalloc-prof",
        {"MALLOC_CONF": "prof:true,lg_prof_sample:19"},
        "jemalloc built with heap profiles, and with one: 512 KiB a sample",
    ),
    "annex-hardened-zeroing-less": Variant(
        "annex-hardened", {"ANNEX_ZERO_FREED": "0"}, "the hardened build, of larger freed blocks zeroing 128 bytes"
    ),
    "annex-marked": Variant("annex-marked", {}, "Annex with markers for Mallacc: target annex-marked-shared"),
    "annex-solo-marked": Variant("annex-solo-marked", {}, "the same of its flavour for one thread"),
    "annex-segregated": Variant(
        "annex-segregated", {}, "metadata apart from the blocks, for a support core: target annex-segregated-shared"
    ),
    "annex-unbatched": Variant("annex-unbatched", {}, "Annex without batches: target annex-unbatched-shared"),
    "annex-by-slab": Variant("annex-by-slab", {}, "Annex with a queue for each slab: target annex-by-slab-shared"),
    "annex-by-slab-unbatched": Variant(
        "annex-by-slab-unbatched", {}, "the same without batches: target annex-by-slab-unbatched-shared"
    ),
    "snmalloc-checks-unbatched": Variant(
        "snmalloc-checks-unbatched", {}, "snmalloc with every check, built without BatchIt"
    ),
    **{
        name: Variant(name, {}, f"{what}: target {name}-shared")
        for name, what in {
            "annex-hardened-near": "hardened Annex with places among the addresses that the simulator has",
            "annex-hardened-near-unbatched": "the same without batches",
            "annex-hardened-near-by-slab": "the same with a queue for each slab",
            "annex-hardened-near-by-slab-unbatched": "the same without batches",
        }.items()
    },
    **OPEN_BATCHES_OF,
    **HARDENED_WITHOUT_OF,
    "mimalloc3-no-purge": Variant("mimalloc3", {"MIMALLOC_PURGE_DELAY": "-1"}, "mimalloc 3 that gives no pages back"),
}
FLOOR = "floor"
GROUPS = {
    "ours": OURS,
    "core": CORE,
    "peers": PEERS,
    "variants": VARIANTS,
    "ladder": LADDER,
    "all": (*OURS, *PEERS, *VARIANTS),
}

# Variables that hold a list of settings: those of an allocator and of its variant are both meant.
_LISTS = {"GLIBC_TUNABLES": ":", "MALLOC_CONF": ","}


def is_ours(name: str) -> bool:
    """Annex's flavours, and builds of them that a person has named annex-something."""
    return name.startswith("annex")


class Unavailable(Exception):
    """The allocator cannot be measured here; the message says why, or what to do."""


class UnknownAllocator(Unavailable):
    """Nothing has that name."""


@dataclass(frozen=True)
class Allocator:
    name: str
    library: Path | None  # None: glibc, nothing is preloaded
    version: str
    env: dict[str, str] = field(default_factory=dict)  # what a program needs for it to work as its makers intend
    flags: str = ""  # how it was compiled, in words
    companions: tuple[Path, ...] = ()  # files that the library needs in its own folder, under these very names

    @property
    def for_one_thread(self) -> bool:
        """Made for single-threaded programs; in others it goes on as shared does, by a longer way."""
        return self.name == "annex-solo"

    @property
    def takes_one_call_at_a_time(self) -> bool:
        """It has no lock: for a simulated support core, or for programs of one thread on a simulated core."""
        return self.name == "annex-segregated"

    @property
    def has_support(self) -> bool:
        """A thread of the allocator's own works beside the program's."""
        return self.name.startswith("annex-offload")

    def settings_for(self, peak_kib: int) -> dict[str, str]:
        """The environment for a program with that peak resident set: the floor's memory is ready before it starts."""
        if self.name != FLOOR:
            return self.env
        return {**self.env, "ANNEX_FLOOR_MIB": str(64 + peak_kib * 3 // 2 // 1024)}

    @property
    def preload(self) -> str:
        return str(self.library) if self.library else ""


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12]


def merged(env: dict[str, str], more: dict[str, str]) -> dict[str, str]:
    """Both environments; where both set a variable the second counts, or is appended if it is a list of settings."""
    both = {**env, **more}
    for name, separator in _LISTS.items():
        if name in env and name in more:
            both[name] = separator.join((env[name], more[name]))
    return both


def _built(name: str) -> Allocator:
    """What peers/build has made under that name."""
    if name == "glibc":
        return Allocator(name, None, os.confstr("CS_GNU_LIBC_VERSION").split()[-1], flags="the distribution's")
    manifest = paths.PEERS / "manifest.json"
    known = json.loads(manifest.read_text()) if manifest.exists() else {}
    entry = known.get(name, {})
    if entry.get("status") == "failed":
        raise Unavailable(f"{name} could not be had: {entry['why']}")
    library = paths.PEERS / f"{name}.so"
    companions = tuple(paths.PEERS / file for file in entry.get("companions", ()))
    if entry.get("status") != "ready" or not all(file.exists() for file in (library, *companions)):
        raise Unavailable(f"{name} is not built: run peers/build {name}")
    return Allocator(name, library, entry["version"], entry["env"], entry["flags"], companions)


def _variant(name: str) -> Allocator:
    variant = VARIANTS_OF.get(name) or STEPS_OF.get(name) or EXPERIMENTS_OF[name]
    base = _ours(variant.base) if is_ours(variant.base) else _built(variant.base)
    return dataclasses.replace(base, name=name, env=merged(base.env, variant.env))


def _ours(name: str) -> Allocator:
    library = paths.RELEASE / f"lib{name}.so"
    if not library.exists():
        target = "" if name in OURS else f" --target {name}-shared"  # experiments are in no default build
        raise Unavailable(f"{name} is not built: cmake --preset release && cmake --build --preset release{target}")
    return Allocator(name, library, f"build {digest(library)}", flags=RELEASE_FLAGS)


def _floor() -> Allocator:
    try:
        return Allocator(FLOOR, native.floor(), "a bound", flags="lab/annex_lab/native/floor.c")
    except native.BuildFailed as why:
        raise Unavailable(f"{FLOOR} could not be built: {why}") from None


def find(name: str) -> Allocator:
    """The allocator of that name, or a library of one's own: NAME=/path/to/lib.so."""
    if "=" in name:
        label, _, library = name.partition("=")
        if not Path(library).is_file():
            raise Unavailable(f"{label}: there is no library {library}")
        return Allocator(label, Path(library).resolve(), f"file {digest(Path(library))}")
    if name in VARIANTS or name in STEPS_OF or name in EXPERIMENTS_OF:
        return _variant(name)
    if name in PEERS:
        return _built(name)
    if name in OURS or name == HARDENED:
        return _ours(name)
    if name == FLOOR:
        return _floor()
    known = ", ".join((*GROUPS["all"], HARDENED, FLOOR))
    raise UnknownAllocator(
        f"no allocator is called {name}: {known}; or NAME=/path/to/lib.so; or a group: {', '.join(GROUPS)}"
    )


def find_for_programs(name: str) -> Allocator:
    """As find(), of those that programs may run on outside of the simulator."""
    found = find(name)
    if found.takes_one_call_at_a_time:
        raise Unavailable("it has no lock: for annex-lab sim alone")
    return found


def expand(names: Iterable[str]) -> list[str]:
    """The names with the groups among them spelled out, each once, in the order given."""
    return list(dict.fromkeys(one for name in names for one in GROUPS.get(name, (name,))))


def build_missing(names: list[str]) -> None:
    """Has peers/build make those peers that are not there yet; what cannot be made is left for find() to say."""
    if not _missing(names):
        return
    with native.alone():
        missing = _missing(names)  # another process may have made them while this one waited
        if missing:
            subprocess.run([str(paths.ROOT / "peers" / "build"), *missing], stdout=sys.stderr, check=False)


def _missing(names: list[str]) -> list[str]:
    """What peers/build is to make for these allocators."""
    missing = []
    for name in expand(names):
        if name not in PEERS + VARIANTS:
            continue
        try:
            find(name)
        except Unavailable:
            missing.append(VARIANTS_OF[name].base if name in VARIANTS else name)
    return list(dict.fromkeys(missing))


def page_policy(allocator: Allocator) -> str:
    """How much of a heap lies on huge pages under this allocator, as measured: peers/pages.cpp says how."""
    answers = paths.PEERS / "pages.json"
    try:
        program = _pages_program()
        env = sample.environment(allocator.env)
        key = _policy_key(program, allocator, env)
        known = json.loads(answers.read_text()) if answers.exists() else {}
        if key not in known:
            known[key] = policy_in_words(_measure_pages(program, allocator, env))
            fresh = answers.with_suffix(f".{os.getpid()}")
            fresh.write_text(json.dumps(known, indent=1) + "\n")
            fresh.replace(answers)
        return known[key]
    except (OSError, subprocess.SubprocessError, ValueError, Unavailable) as why:
        return f"unknown: {why}"


def _pages_program() -> Path:
    program, source = paths.PEERS / "pages", paths.ROOT / "peers" / "pages.cpp"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        subprocess.run([str(paths.ROOT / "peers" / "build"), "--programs"], check=True, capture_output=True)
    return program


def _measure_pages(program: Path, allocator: Allocator, env: dict[str, str]) -> dict[str, float]:
    preload = {"LD_PRELOAD": allocator.preload} if allocator.library else {}
    done = subprocess.run([str(program)], env={**env, **preload}, capture_output=True, text=True, timeout=60)
    # A library that cannot be loaded is only warned of, and glibc would be measured under its name.
    if done.returncode != 0 or "cannot be preloaded" in done.stderr:
        last = done.stderr.strip().splitlines()[-1:]
        raise Unavailable(" ".join([f"the program that asks ended with {done.returncode}", *last]))
    return json.loads(done.stdout)


def policy_in_words(measured: dict[str, float]) -> str:
    """The figures of peers/pages.cpp for a table's cell."""

    def part(kind: str) -> str:
        huge, resident = round(measured[f"{kind}_huge_mib"]), round(measured[f"{kind}_mib"])
        return f"{huge} of {resident} MiB" if huge else "none"

    small, large = part("small"), part("large")
    if small == large == "none":
        return "huge pages: none"
    return f"huge pages: small blocks {small}, large {large}"


def _policy_key(program: Path, allocator: Allocator, env: dict[str, str]) -> str:
    """Changes whenever the answer may: with the library, its settings, the kernel and its setting, the program."""
    kernel = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    files = [program, *([allocator.library] if allocator.library else []), *allocator.companions]
    parts = [allocator.version, env, kernel.read_text() if kernel.exists() else "", os.uname().release]
    return hashlib.sha256(json.dumps([parts, [digest(file) for file in files]], sort_keys=True).encode()).hexdigest()
