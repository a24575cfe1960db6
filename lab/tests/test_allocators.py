"""Names, groups and variants of allocators, and what is said of those that are not there. No peer need be built."""

import json
import subprocess
from pathlib import Path

import pytest

from annex_lab import allocators, paths, proof
from annex_lab.allocators import Allocator, Unavailable


@pytest.fixture
def peers(tmp_path, monkeypatch):
    """An empty folder of peers; add(name, **entry) puts one there as peers/build would."""
    monkeypatch.setattr(paths, "PEERS", tmp_path)

    def add(name: str, **entry) -> None:
        file = tmp_path / "manifest.json"
        manifest = json.loads(file.read_text()) if file.exists() else {}
        ready = {"status": "ready", "version": "1.0", "flags": "-O3", "env": {}, "companions": []}
        manifest[name] = entry if entry.get("status") == "failed" else {**ready, **entry}
        file.write_text(json.dumps(manifest))
        (tmp_path / f"{name}.so").write_text("a library")

    return add


def test_groups_are_spelled_out_once_in_order():
    assert allocators.expand(["jemalloc", "core", "jemalloc", "x=/lib/x.so"]) == [
        "jemalloc",
        *(name for name in allocators.CORE if name != "jemalloc"),
        "x=/lib/x.so",
    ]
    everything = allocators.expand(["all"])
    assert everything == allocators.expand(["ours", "peers", "variants"])
    assert len(everything) == len(set(everything)) and set(allocators.CORE) < set(allocators.PEERS) < set(everything)
    assert allocators.expand(["annex-solo", "unheard-of"]) == ["annex-solo", "unheard-of"]


def test_no_group_hides_an_allocator():
    names = {*allocators.OURS, *allocators.PEERS, *allocators.VARIANTS, *allocators.LADDER}
    assert not set(allocators.GROUPS) & names


def test_the_ladders_steps_are_one_library_told_to_work_differently(monkeypatch, tmp_path):
    monkeypatch.setattr(allocators.paths, "RELEASE", tmp_path)
    for flavour in allocators.OURS:
        (tmp_path / f"lib{flavour}.so").write_bytes(b"")
    found = {name: allocators.find(name) for name in allocators.expand(["ladder"])}
    offload = {name: one for name, one in found.items() if name.startswith("annex-offload")}
    assert {one.library for one in offload.values()} == {tmp_path / "libannex-offload.so"}
    assert [one.env.get("ANNEX_PROTOCOL") for one in offload.values()] == ["handshake", "queue", None]


def test_every_peer_and_every_variants_library_has_a_pin():
    pins = json.loads((paths.ROOT / "peers" / "pins.json").read_text())
    variants = (*allocators.VARIANTS_OF.values(), *allocators.EXPERIMENTS_OF.values())
    wanted = {*allocators.PEERS, *(variant.base for variant in variants)}
    assert {name for name in wanted if name != "glibc" and not allocators.is_ours(name)} == set(pins["peers"])
    assert {pin["package"] for pin in pins["peers"].values()} == set(pins["packages"])


def test_a_peer_that_could_not_be_had_says_why(peers):
    peers("scudo", status="failed", why="no package carries it")
    with pytest.raises(Unavailable, match="scudo could not be had: no package carries it"):
        allocators.find("scudo")


def test_the_variant_of_a_peer_that_could_not_be_had_says_why(peers):
    peers("jemalloc", status="failed", why="its compiler crashed")
    with pytest.raises(Unavailable, match="its compiler crashed"):
        allocators.find("jemalloc-thp")


def test_a_peer_that_was_never_built_says_what_to_do(peers):
    with pytest.raises(Unavailable, match="run peers/build tbb"):
        allocators.find("tbb")


def test_an_experiment_that_was_never_built_names_its_target(monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "RELEASE", tmp_path)
    with pytest.raises(Unavailable, match=r"--target annex-batches-8x2-shared$"):
        allocators.find("annex-batches-8x2")
    with pytest.raises(Unavailable, match=r"--preset release$"):
        allocators.find("annex")


def test_a_peer_without_its_companion_is_not_there(peers, tmp_path):
    peers("tbb", companions=["libtbbmalloc.so.2"])
    with pytest.raises(Unavailable, match="not built"):
        allocators.find("tbb")
    (tmp_path / "libtbbmalloc.so.2").write_text("its other half")
    found = allocators.find("tbb")
    assert found.companions == (tmp_path / "libtbbmalloc.so.2",)
    assert (found.version, found.flags) == ("1.0", "-O3")


def test_a_variant_is_its_base_with_more_settings(peers):
    peers("jemalloc", version="5", flags="-O9")
    base, variant = allocators.find("jemalloc"), allocators.find("jemalloc-thp")
    assert (variant.library, variant.version, variant.flags) == (base.library, "5", "-O9")
    assert variant.name == "jemalloc-thp" and base.env == {} and variant.env == {"MALLOC_CONF": "thp:always"}


def test_the_bases_own_settings_stay(peers, monkeypatch):
    peers("tcmalloc", env={"GLIBC_TUNABLES": "glibc.pthread.rseq=0", "OTHER": "1"})
    more = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
    monkeypatch.setitem(allocators.VARIANTS_OF, "glibc-thp", allocators.Variant("tcmalloc", more, "a test"))
    assert allocators.find("glibc-thp").env == {
        "GLIBC_TUNABLES": "glibc.pthread.rseq=0:glibc.malloc.hugetlb=1",
        "OTHER": "1",
    }


def test_a_setting_that_is_no_list_is_replaced():
    assert allocators.merged({"A": "1", "B": "2"}, {"B": "3"}) == {"A": "1", "B": "3"}


def test_glibc_and_its_variant_preload_nothing():
    assert allocators.find("glibc").preload == allocators.find("glibc-thp").preload == ""
    assert "hugetlb=1" in allocators.find("glibc-thp").env["GLIBC_TUNABLES"]


def test_an_unknown_name_is_told_the_names_and_the_groups():
    with pytest.raises(Unavailable, match=r"mimalloc3-nothp.*NAME=.*variants"):
        allocators.find("jmalloc")


def test_what_is_missing_is_built_by_the_name_of_its_library(peers, monkeypatch):
    peers("jemalloc")
    commands = []
    monkeypatch.setattr(subprocess, "run", lambda command, **_: commands.append(command))
    allocators.build_missing(["annex", "glibc-thp", "jemalloc-thp", "mimalloc3-nothp", "mimalloc3", "x=/lib/x.so"])
    assert [command[1:] for command in commands] == [["mimalloc3"]]


def bound(symbol: str, target: str, referrer: str = "/bin/p") -> str:
    return f"1: binding file {referrer} [0] to {target} [0]: normal symbol `{symbol}'\n"


def test_a_companion_is_the_allocators_own(tmp_path):
    (tmp_path / "bindings.1").write_text(bound("malloc", "/b/tbb.so") + bound("free", "/b/libtbbmalloc.so.2"))
    assert proof.complaint(tmp_path, "/b/tbb.so") == "free is served by libtbbmalloc.so.2"
    assert proof.complaint(tmp_path, "/b/tbb.so", [tmp_path / "libtbbmalloc.so.2"]) is None
    (tmp_path / "bindings.2").write_text(bound("free", "/lib/libc.so.6"))
    assert "libc.so.6" in proof.complaint(tmp_path, "/b/tbb.so", [tmp_path / "libtbbmalloc.so.2"])


@pytest.mark.parametrize("symbol, honest", [("free", True), ("realloc", True), ("malloc", False), ("calloc", False)])
def test_an_allocator_may_know_libcs_free_but_not_take_its_memory(tmp_path, symbol, honest):
    beneath = bound(symbol, "/lib/libc.so.6", referrer="/b/tbb.so")
    (tmp_path / "bindings.1").write_text(bound("malloc", "/b/tbb.so") + beneath)
    assert (proof.complaint(tmp_path, "/b/tbb.so") is None) == honest
    (tmp_path / "bindings.1").write_text(
        bound("malloc", "/b/tbb.so") + bound(symbol, "/lib/libc.so.6", "/lib/other.so")
    )
    assert proof.complaint(tmp_path, "/b/tbb.so") == f"{symbol} is served by libc.so.6"


@pytest.mark.parametrize(
    "figures, words",
    [
        ((0.0, 67.8, 0.0, 32.0), "huge pages: none"),
        ((62.0, 68.4, 32.0, 32.1), "huge pages: small blocks 62 of 68 MiB, large 32 of 32 MiB"),
        ((0.0, 70.0, 30.0, 32.0), "huge pages: small blocks none, large 30 of 32 MiB"),
    ],
)
def test_a_page_policy_in_words(figures, words):
    names = ("small_huge_mib", "small_mib", "large_huge_mib", "large_mib")
    assert allocators.policy_in_words(dict(zip(names, figures, strict=True))) == words


@pytest.fixture
def pages(peers, tmp_path):
    """Stands in for build/peers/pages: says how often it ran, and what it sees of its environment."""

    def write(script: str) -> None:
        program = tmp_path / "pages"
        program.write_text(f"#!/bin/sh\necho run >> {tmp_path}/runs\n{script}\n")
        program.chmod(0o755)

    return write


FIGURES = 'echo \'{"small_huge_mib": 64, "small_mib": 66, "large_huge_mib": 0, "large_mib": 32}\''


def test_a_page_policy_is_measured_once_for_each_setting(pages, tmp_path):
    pages(f'[ "$THP" = no ] && exit 7\n{FIGURES}')
    glibc = Allocator("glibc", None, "2.36")
    assert "small blocks 64 of 66 MiB, large none" in allocators.page_policy(glibc)
    assert allocators.page_policy(glibc) == allocators.page_policy(glibc)
    assert (tmp_path / "runs").read_text() == "run\n"
    other = Allocator("glibc", None, "2.36", {"THP": "no"})
    assert allocators.page_policy(other) == "unknown: the program that asks ended with 7"
    assert (tmp_path / "runs").read_text() == "run\nrun\n"


def test_a_library_that_cannot_be_loaded_has_no_page_policy(pages, tmp_path):
    pages(FIGURES)
    library = tmp_path / "broken.so"
    library.write_text("no library")
    policy = allocators.page_policy(Allocator("broken", library, "1"))
    assert policy.startswith("unknown: ") and "cannot be preloaded" in policy


def test_the_real_program_sees_glibcs_huge_pages():
    """Compiled here if need be. What there is to see depends on what the kernel lets a process ask for."""

    def measured(name: str) -> dict[str, float]:
        found = allocators.find(name)
        return allocators._measure_pages(allocators._pages_program(), found, found.env)

    plain, asking = measured("glibc"), measured("glibc-thp")
    assert 64 <= plain["small_mib"] < 80 and 32 <= plain["large_mib"] < 36
    setting = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text()
    if "[madvise]" in setting:
        assert plain["small_huge_mib"] + plain["large_huge_mib"] == 0
        assert asking["small_huge_mib"] > 32 and asking["large_huge_mib"] > 16
    elif "[never]" in setting:
        assert asking["small_huge_mib"] + asking["large_huge_mib"] == 0
