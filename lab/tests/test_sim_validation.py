"""Validation's own arithmetic: bias, verdicts, bounds of contended kernels, the machine `host`; runs that are timed."""

import subprocess
import sys
from pathlib import Path

import pytest
import simulator

from annex_lab import native, paths
from annex_lab.sim import host, kernels, machines, run, validation
from annex_lab.sim.validation import absolute, against_host, agreement, contended, real_cores, timed, two_threads
from annex_lab.sim.validation.section import MET, NOT_MET, Section
from annex_lab.sim.validation.validator import Validator

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


def test_a_section_that_was_left_out_says_why():
    text = Section("A", "b", [], left_out="nobody is here").markdown()
    assert text == "## A\n\nb\n\nNot measured: nobody is here.\n"


def test_parts_of_a_page_are_replaced_and_the_others_stay():
    page = "# P\n\nAbout.\n\n## A\n\nold\n\n## B\n\nstays\n"
    new = [Section("A", "new", ["c"]), Section("C", "more", ["c"])]
    text = validation.replaced(page, new)
    assert text == ("# P\n\nAbout.\n\n## A\n\nnew\n\n| c |\n|---|\n\n## B\n\nstays\n\n## C\n\nmore\n\n| c |\n|---|\n")
    assert validation.replaced(text, new) == text


# --- absolute cycles ---


def absolute_found(ratio: float) -> absolute.Found:
    return absolute.Found("a", dict.fromkeys(absolute.ALLOCATORS, 1e9), dict.fromkeys(absolute.ALLOCATORS, ratio * 1e9))


def test_absolute_cycles_that_are_right_meet_all_bounds():
    section = absolute.section([absolute_found(1.04), absolute_found(0.97)], "So.")
    assert section.failed == []
    assert section.rows[0] == ["a", *["1.04"] * 6, "1.04", MET]
    assert section.rows[-1][-2:] == ["1.004", MET]


def test_each_bound_on_absolute_cycles_can_fail():
    section = absolute.section([absolute_found(0.84), absolute_found(1.15)], "So.")
    assert section.failed == ["a: 0.84"]
    section = absolute.section([absolute_found(0.9), absolute_found(0.95)], "So.")
    assert section.failed == ["mean over programs 0.925"]


def test_simplifications_are_means_over_two_allocators():
    found = absolute_found(1.0)
    section = absolute.simplifications([found], {"x": {"a": {"glibc": 2e9, "annex": 8e9}}})
    assert section.rows == [["x", "4.000", "4.000"]]
    assert not section.judged


@simulator.needed
def test_simplifications_are_parameters(tmp_path):
    validator = Validator(tmp_path)
    base = run.parameters(Path(absolute.changed(validator, str(machines.PRESETS / "speedmalloc-1.toml"), 0, [])))
    for number, (what, settings) in enumerate(absolute.SIMPLIFICATIONS.items(), 1):
        file = absolute.changed(validator, str(machines.PRESETS / "speedmalloc-1.toml"), number, settings)
        assert (run.parameters(Path(file)) == base) == (what == "as it is")


def rounds_of(cycles: int | None, few: float = 0.0, many: float = 1.0) -> timed.Rounds:
    runs = [timed.Timed(0.5 + i, 1.0, cycles=cycles) for i in range(4)]
    return timed.Rounds({"glibc": runs}, timed.Clock([few], [many]))


def test_cycles_are_counted_or_time_by_the_clock():
    _, times = timed.CLOCK
    second = times * timed.OPERATIONS * host.MULTIPLY_CYCLES / 1e9  # of which the kernel would say 1 GHz
    assert absolute.cycles_of(rounds_of(700)) == {"glibc": 700}
    assert absolute.cycles_of(rounds_of(None, second, 1.5 * second)) == {"glibc": pytest.approx(0.5 * 2e9)}
    assert absolute.cycles_of(rounds_of(None, second, second)) is None


def test_an_unknown_processor_has_no_absolute_cycles(monkeypatch):
    monkeypatch.setattr(host, "known", lambda: False)
    (section,) = absolute.of_absolute(None, 1)
    assert "is not known" in section.markdown()
    assert "is not known" in two_threads.of_two_threads(None, 1).markdown()


def test_cycles_of_perf():
    assert timed.cycles_of("# started on ...\n\n1234,,cycles,5678,100.00,,\n") == 1234
    for not_counted in ("<not supported>,,cycles,0,100.00,,", "1234,,cycles:u,5678,100.00,,", ""):
        assert timed.cycles_of(not_counted) is None


def test_a_run_is_timed():
    line = '{"workload": "a", "seconds": 0.25, "score": 1e-9}'
    done = timed.timed(run.Guest(["/bin/sh", "-c", f"echo noise; echo '{line}'; sleep 0.05"]), "glibc")
    assert done.own_s == 0.25
    assert done.wall_s >= 0.05 > done.cpu_s
    assert timed.timed(run.Guest(["/bin/true"]), "glibc").own_s > 0


# --- two threads ---


def two_found(simulated: dict[str, float]) -> two_threads.Found:
    seconds = dict(zip(two_threads.ALLOCATORS, (1.0, 1.1, 1.2, 1.3, 1.4, 1.5), strict=True))
    return two_threads.Found("a", seconds, seconds | simulated)


def test_two_threads_that_are_right_meet_all_bounds():
    section = two_threads.section([two_found({})], "So.")
    assert section.failed == []
    assert section.rows[0][1] == "1.10 1.10 (+0 %)"


def test_each_bound_on_two_threads_can_fail():
    section = two_threads.section([two_found({"annex": 4.0, "glibc": 0.2})], "So.")
    assert [what.split()[-2] for what in section.failed] == ["rank", "20"]
    section = two_threads.section([two_found(dict.fromkeys(two_threads.ALLOCATORS, 2.0))], "So.")
    assert [what.split()[1] for what in section.failed] == ["time", "rank", "%"]


def test_there_must_be_two_cpus(monkeypatch):
    monkeypatch.setattr(two_threads.os, "sched_getaffinity", lambda _: {0})
    assert "there are no 2 CPUs here" in two_threads.of_two_threads(None, 5).markdown()


# --- sixteen real cores ---


def test_the_data_of_real_cores_is_the_documents():
    """docs/many-cores.md is where they are from: its tables say the same."""
    page = (paths.ROOT / "docs/many-cores.md").read_text()
    known = real_cores.data()
    assert [len(table) for table in (known.real, known.simulated)] == [5, 5]
    for table, after in ((known.simulated, "| 16 cores |"), (known.real, "| 16 threads |")):
        rows = page.split(after)[1]
        for program, of_peers in table.items():
            (row, *_) = [line for line in rows.splitlines() if line.startswith(f"| {program} |")]
            cells = [float(cell.split("(")[0]) for cell in row.split("|")[2:-1]]
            assert cells == list(of_peers.values()), program


def test_verdicts_on_real_cores():
    known = real_cores.data()
    section = real_cores.section("A", "So.", known.real, known.simulated)
    assert section.failed == ["ranks within bound: 0 of 5", "cells within bound: 13 of 20"]
    assert real_cores.section("A", "So.", known.real, known.real).failed == []


def test_ratios_are_to_the_library_that_ran_there(monkeypatch):
    seconds = {real_cores.base(): 2.0, "tcmalloc": 5.0}
    monkeypatch.setattr(two_threads, "simulated_seconds", lambda v, who, name, machine, seed: seconds.get(name, 3.0))

    class Fake:
        def workload(self, name, scale, threads, sizes):
            assert threads == 16

        def each(self, simulate, of):
            return [simulate(one) for one in of]

    found = real_cores.simulate(Fake(), "m", real_cores.RUNS)
    assert found["mstress"] == {"jemalloc": 1.5, "tcmalloc": 2.5, "mimalloc3": 1.5, "snmalloc": 1.5}
    assert list(found) == list(real_cores.RUNS)


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


MEASURED = ("l1d", "l2", "llc", "memory", "forward", "atomic", "mispredict", "taken")


def test_the_host_is_written_as_measured():
    measured = {
        "ghz": 4.0, "l1d": 1.0, "l2": 3.5, "llc": 13.5, "memory": 100.0, "forward": 2.0, "atomic": 5.0,
        "mispredict": 7.0, "taken": 0.4,
    }  # fmt: skip
    kernel = ["[system]", "call_us = 0.110"]
    caches = {"l1d": (48 << 10, 12), "l2": (1 << 20, 16), "llc": (32 << 20, 16)}
    text = host.machine_text("AMD EPYC", host.ZEN_5, 2, caches, measured, kernel)
    for line in ("rob = 448", "ghz = 4.0", "forward = 7", "taken = 2", "atomic = 20", "call_us = 0.110"):
        assert line in text.splitlines()
    assert [line for line in text.splitlines() if line.startswith("latency")] == [
        "latency = 4",
        "latency = 10",
        "latency = 40",
    ]
    assert "which it may not be" in host.machine_text("?", None, 2, caches, measured, kernel)


def test_hand_overs_are_by_the_time_of_a_turn():
    assert host.coherence(turn=160.4, look_up=50) == ["[coherence]", "transfer = 38", "invalidate = 22"]
    assert host.coherence(turn=60, look_up=50) == ["[coherence]", "transfer = 0", "invalidate = 0"]
    measured = dict.fromkeys(MEASURED, 10.0) | {"ghz": 4.0}
    caches = {"l1d": (48 << 10, 12), "l2": (1 << 20, 16), "llc": (32 << 20, 16)}
    assert "[coherence]" not in host.machine_text("AMD EPYC", host.ZEN_3, 2, caches, measured, [])
    text = host.machine_text("AMD EPYC", host.ZEN_3, 2, caches, measured | {"turn": 50.0}, [])
    assert "transfer = 72" in text  # of 200 cycles, less two look-ups of 42
    assert "[stlb]\nentries = 2048\nways = 8" in text


def test_the_last_level_is_as_large_as_its_loads_are_fast():
    times = {2: 15.0, 4: 30.0, 8: 140.0, 16: 20.0, 32: 150.0}
    assert host.ours_of(32, 2, 80.0, times.get) == 4
    assert host.ours_of(32, 2, 145.0, times.get) == 16
    assert host.ours_of(32, 2, 10.0, times.get) == 2
    assert host.ours_of(16, 2, 1000.0, times.get) == 16
    measured = dict.fromkeys(MEASURED, 10.0) | {"ghz": 4.0}
    caches = {"l1d": (32 << 10, 8), "l2": (512 << 10, 8), "llc": (32 << 20, 16)}
    for ours, shown in ((4 << 20, 4 << 20), (64 << 20, 32 << 20), (1 << 20, 1 << 20)):
        text = host.machine_text("AMD EPYC", host.ZEN_3, 2, caches, measured | {"llc_bytes": ours}, [])
        assert f"[llc]\nbytes = {shown}" in text


def test_what_was_measured_is_kept_and_a_turn_is_asked_for_until_it_is_known(tmp_path, monkeypatch):
    monkeypatch.setattr(host, "KEPT", tmp_path / "sim" / "host.json")
    monkeypatch.setattr(host, "measure", lambda found: {"ghz": 3.0, "taken": 0.5})
    turns = iter([{}, {"turn": 60.0}])
    monkeypatch.setattr(host, "turn", lambda: next(turns))
    assert host._measured("a", {}) == {"ghz": 3.0, "taken": 0.5}
    monkeypatch.setattr(host, "measure", lambda found: {"ghz": 4.0, "taken": 0.5})
    assert host._measured("a", {}) == {"ghz": 3.0, "taken": 0.5, "turn": 60.0}
    assert host._measured("a", {}) == {"ghz": 3.0, "taken": 0.5, "turn": 60.0}
    turns = iter([{"turn": 70.0}])
    assert host._measured("b", {}) == {"ghz": 4.0, "taken": 0.5, "turn": 70.0}


def test_a_disturbed_host_is_a_possible_machine():
    measured = dict.fromkeys(MEASURED, 1e6) | {"ghz": 4.0}
    measured["llc"] = 3e6
    caches = {"l1d": (48 << 10, 12), "l2": (1 << 20, 16), "llc": (32 << 20, 16)}
    lines = host.machine_text("AMD EPYC", host.ZEN_5, 2, caches, measured, []).splitlines()
    for line in ("latency = 1000", "latency = 1", "forward = 100", "atomic = 1000"):
        assert line in lines


def test_an_impossible_clock_is_measured_again_and_then_not_believed():
    cycles = iter([1 / 17, -0.2, 0.25])
    assert host.measured_clock(lambda: next(cycles), told=2.0) == 4.0
    assert host.measured_clock(lambda: 1 / 17, told=2.0) == 2.0
