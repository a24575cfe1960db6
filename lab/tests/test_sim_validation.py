"""Validation's own arithmetic: bias, verdicts, bounds of contended kernels, the machine `host`."""

import subprocess
import sys

import pytest
import simulator

from annex_lab import native, paths
from annex_lab.sim import host, kernels, machines, run
from annex_lab.sim.validation import against_host, agreement, contended
from annex_lab.sim.validation.section import MET, NOT_MET, Section

KERNEL_TIMES_5 = paths.ROOT / "lab/campaign/sim/machines/kernel-times-5.toml"


def test_bias_is_geometric_and_signed():
    assert agreement.bias([1.0, -0.5]) == pytest.approx(0)
    assert agreement.bias([-0.1, -0.1]) == pytest.approx(-0.1)
    assert agreement.share_within([0.1, -0.25, 0.26, -0.9], 0.25) == 0.5


def found(simulated: dict[str, int]) -> against_host.Found:
    names = against_host.ALLOCATORS
    seconds = dict(zip(names, (1.0, 0.9, 0.8, 0.7, 0.6, 0.5), strict=True))
    return against_host.Found("a", seconds, {name: simulated.get(name, round(seconds[name] * 1e9)) for name in names})


def test_a_simulation_that_is_right_meets_all_bounds():
    section = against_host.ratios("A", "b", [found({})], 1.0)
    assert section.failed == []
    assert section.rows[0][-3:] == ["1.00", MET, "1.00 (1.00 to 1.00)"]


def test_each_bound_against_the_host_can_fail():
    section = against_host.ratios("A", "b", [found({"glibc": 400_000_000, "annex": 4_000_000_000})], 1.0)
    assert [what.split()[0] for what in section.failed] == ["rank", "0", "mean", "rank"]
    assert NOT_MET in section.rows[0]


def test_huge_pages_are_off_for_what_is_started_within():
    ask = [sys.executable, "-c", "import ctypes; print(ctypes.CDLL(None).prctl(42, 0, 0, 0, 0))"]  # PR_GET_THP_DISABLE

    def forbidden() -> str:
        return subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip()

    before = forbidden()
    with against_host.without_huge_pages():
        assert forbidden() == "1"
    assert forbidden() == before == "0"


def test_a_section_says_what_is_not_met():
    section = Section("A", "b", ["c", ""])
    section.rows.append(["1", section.verdict(True, "one")])
    assert "All within their bounds." in section.markdown()
    section.rows.append(["2", section.verdict(False, "two")])
    assert section.markdown().endswith("| 2 | **not met** |\n\n**Not met:** two.\n")


def test_costs_of_contended_kernels():
    assert contended.cost(1000, 1000 + 62 * 500, 500) == 62
    assert not contended.fallen([18, 62, 62, 61.5])
    assert contended.fallen([18, 37, 20, 20])  # what the review found
    assert contended.fallen([18, 60, 61, 80, 70])


def test_formulas_are_of_the_parameters():
    machine = {
        "llc": {"latency": 24},
        "coherence": {"transfer": 20, "invalidate": 12, "far": 6},
        "core": {"atomic": 18},
        "l1d": {"latency": 4},
    }
    least = {one.name: one.least(machine) for one in kernels.CONTENDED}
    assert least == {
        "contended-atomics": 44,
        "far-atomics": 6,
        "test-and-set": 44,
        "ticket-lock": 80,
        "poll-loop": 80,
        "queue": 44,
    }
    (exact,) = (one.exact(machine) for one in kernels.CONTENDED if one.exact)
    assert exact == 58


@pytest.mark.parametrize("kernel", sorted({one.kernel for one in kernels.CONTENDED}))
def test_contended_kernels_end(kernel):
    subprocess.run([native.kernels(), kernel, "20", "2"], check=True, timeout=60)


def test_what_the_kernels_refuse():
    for arguments in (["nonesuch", "1"], ["loads", "1"], ["ticket-lock", "1", "1000"], ["ticket-lock"]):
        assert subprocess.run([native.kernels(), *arguments], capture_output=True).returncode == 2


@simulator.needed
def test_five_times_the_kernels_times_is_all_of_them():
    """lab/campaign/sim/machines says them one by one: none may be missing, or be from an older machine."""
    base, changed = (run.parameters(file) for file in (machines.PRESETS / "speedmalloc-16.toml", KERNEL_TIMES_5))
    for table in ("pages", "system"):
        for name, value in base[table].items():
            if name.endswith("_us") and name != "slice_us":
                assert changed[table][name] == pytest.approx(5 * value), name


def test_machines_for_threads():
    sizes = machines.sizes()
    assert sizes[:5] == [1, 2, 4, 8, 16]
    assert machines.for_threads(3) == "speedmalloc-4"
    assert machines.for_threads(1000) == f"speedmalloc-{sizes[-1]}"


CPUINFO = "vendor_id\t: AuthenticAMD\ncpu family\t: {}\nmodel\t\t: {}\nmodel name\t: AMD EPYC\n"


def test_cores_are_known_by_family_and_model():
    assert host.core(CPUINFO.format(26, 2)) is host.ZEN_5
    assert host.core(CPUINFO.format(25, 17)) is host.ZEN_4
    assert host.core(CPUINFO.format(25, 1)) is host.ZEN_3
    assert host.core(CPUINFO.format(99, 1)) is None
    assert host.core("") is None


def cache(folder, number: int, level: str, kind: str, size: str, ways: str, shared: str) -> None:
    index = folder / f"index{number}"
    index.mkdir()
    for name, text in (
        ("level", level),
        ("type", kind),
        ("size", size),
        ("ways_of_associativity", ways),
        ("shared_cpu_list", shared),
    ):
        (index / name).write_text(text + "\n")


def test_caches_are_the_kernels_and_our_share_of_the_last(tmp_path, monkeypatch):
    monkeypatch.setattr(host.os, "sched_getaffinity", lambda _: {0, 1})
    cache(tmp_path, 0, "1", "Data", "48K", "12", "0")
    cache(tmp_path, 2, "2", "Unified", "1024K", "16", "0")
    cache(tmp_path, 3, "3", "Unified", "32768K", "16", "0-7")
    assert host.caches(tmp_path) == {"l1d": (48 << 10, 12), "l2": (1 << 20, 16), "llc": (8 << 20, 16)}


def test_the_host_is_written_as_measured():
    measured = {
        "ghz": 4.0, "l1d": 1.0, "l2": 3.5, "llc": 13.5, "memory": 100.0, "forward": 2.0, "atomic": 5.0,
        "mispredict": 7.0,
    }  # fmt: skip
    kernel = ["[system]", "call_us = 0.110"]
    caches = {"l1d": (48 << 10, 12), "l2": (1 << 20, 16), "llc": (32 << 20, 16)}
    text = host.machine_text("AMD EPYC", host.ZEN_5, 2, caches, measured, kernel)
    for line in ("rob = 448", "ghz = 4.0", "forward = 7", "atomic = 20", "call_us = 0.110"):
        assert line in text.splitlines()
    assert [line for line in text.splitlines() if line.startswith("latency")] == [
        "latency = 4",
        "latency = 10",
        "latency = 40",
    ]
    assert "which it may not be" in host.machine_text("?", None, 2, caches, measured, kernel)


def test_a_disturbed_host_is_a_possible_machine():
    measured = dict.fromkeys(("l1d", "l2", "llc", "memory", "forward", "atomic", "mispredict"), 1e6) | {"ghz": 4.0}
    measured["llc"] = 3e6
    caches = {"l1d": (48 << 10, 12), "l2": (1 << 20, 16), "llc": (32 << 20, 16)}
    lines = host.machine_text("AMD EPYC", host.ZEN_5, 2, caches, measured, []).splitlines()
    for line in ("latency = 1000", "latency = 1", "forward = 100", "atomic = 1000"):
        assert line in lines


def test_an_impossible_clock_is_measured_again_and_then_not_believed():
    cycles = iter([1 / 17, -0.2, 0.25])
    assert host.measured_clock(lambda: next(cycles), told=2.0) == 4.0
    assert host.measured_clock(lambda: 1 / 17, told=2.0) == 2.0
