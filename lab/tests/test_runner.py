"""The runner reports the program alone, and only the program gets LD_PRELOAD."""

import dataclasses
import os
import resource
import time
from pathlib import Path

import pytest

from annex_lab import sample
from annex_lab.sample import RunFailed

LIBM = "/lib/x86_64-linux-gnu/libm.so.6"


def test_peak_of_a_small_program_is_its_own_and_not_pythons(program, context):
    ballast = bytearray(64 << 20)  # this process is large now
    own_peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    taken = sample.run(program("/bin/true"), context, "")
    assert len(ballast) and own_peak_kib > 64 * 1024
    assert 0 < taken.peak_rss_kib < 4 * 1024


def test_peak_of_a_larger_program_is_seen(program, context):
    # dd reads into one buffer of 50 MiB.
    taken = sample.run(program("/bin/dd", "if=/dev/zero", "of=/dev/null", "bs=50M", "count=1"), context, "")
    assert 50 * 1024 < taken.peak_rss_kib < 60 * 1024


def test_mean_is_below_a_short_peak(program, context):
    script = "x = bytearray(40 << 20); del x; import time; time.sleep(0.3)"
    taken = sample.run(program("/usr/bin/python3", "-S", "-c", script), context, "")
    assert taken.peak_rss_kib > 45 * 1024
    assert 4 * 1024 < taken.mean_rss_kib < 30 * 1024


def test_cpu_time_and_wall_time(program, context):
    loop = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done"
    busy = sample.run(program("/bin/sh", "-c", loop), context, "")
    idle = sample.run(program("/bin/sleep", "0.2"), context, "")
    assert busy.cpu_s > 0.02 and busy.wall_s >= busy.cpu_s * 0.9
    assert idle.wall_s >= 0.2 and idle.cpu_s < 0.05


def test_times_gives_the_mean_of_the_runs(program, context):
    taken = sample.run(program("/bin/sleep", "0.05", times=4), context, "")
    assert 0.05 <= taken.wall_s < 0.15


def test_preload_reaches_the_program_only(program, context, monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", "")
    show = program(
        "/bin/sh", "-c", "echo \"[$LD_PRELOAD]\"; tr '\\0' '\\n' < /proc/$PPID/environ | grep -c ^LD_PRELOAD"
    )
    with pytest.raises(RunFailed, match="exited with 1"):  # grep -c counts 0 in the runner's environment
        sample.run(show, context, LIBM)
    assert (context.scratch / "stdout").read_text() == f"[{LIBM}]\n0\n"


def test_exit_status_signal_and_missing_program_are_failures(program, context):
    with pytest.raises(RunFailed, match="exited with 3"):
        sample.run(program("/bin/sh", "-c", "exit 3"), context, "")
    with pytest.raises(RunFailed, match="SIGSEGV"):
        sample.run(program("/bin/sh", "-c", "kill -SEGV $$"), context, "")
    with pytest.raises(RunFailed, match="121"):
        sample.run(program("/nonexistent/program"), context, "")


def test_a_program_that_hangs_is_ended_with_its_children(program, context):
    context = dataclasses.replace(context, limit_s=0.3)
    with pytest.raises(RunFailed, match="longer than"):
        sample.run(program("/bin/sh", "-c", "sleep 60 & echo $!; wait"), context, "")
    child = int((context.scratch / "stdout").read_text())
    stat = Path(f"/proc/{child}/stat")
    for _ in range(100):  # a killed process takes a moment to go
        if not stat.exists() or stat.read_text().split()[2] == "Z":
            return
        time.sleep(0.01)
    pytest.fail("the child still runs")


def test_the_callers_environment_stays_outside(program, context, monkeypatch):
    monkeypatch.setenv("SECRET", "1")
    monkeypatch.setenv("ANNEX_OPTION", "2")
    sample.run(program("/usr/bin/env"), context, "")
    names = {line.split("=")[0] for line in (context.scratch / "stdout").read_text().splitlines()}
    assert "SECRET" not in names and "ANNEX_OPTION" in names and "LD_PRELOAD" not in names


def test_report_of_several_runs():
    text = "pid 7\nrun 1000000 500 100 900 10 0 0 4 1 0\nrun 3000000 700 300 1100 20 1 0 8 3 800\n"
    taken = sample.parse_report(text)
    assert taken.wall_s == pytest.approx(0.001)
    assert taken.cpu_s == pytest.approx(0.0006)
    assert (taken.peak_rss_kib, taken.mean_rss_kib, taken.minor_faults) == (1100, 800, 10)
    assert (taken.voluntary_switches, taken.involuntary_switches) == (4, 1)


def test_a_sleeper_switches(program, context):
    assert sample.run(program("/bin/sleep", "0.01"), context, "").voluntary_switches >= 1


def test_report_without_a_run():
    with pytest.raises(RunFailed):
        sample.parse_report("")


def test_what_a_support_thread_used_is_asked_for(program, context):
    leaves = ("/bin/sh", "-c", 'echo "{\\"support_cpu_us\\":1500000}" >> "$ANNEX_STATS_FILE"; echo $ANNEX_STATS')
    assert sample.run(program(*leaves), context, "", {}, has_support=True).support_cpu_s == 1.5
    assert sample.run(program("/bin/true"), context, "", {}, has_support=True).support_cpu_s == 0
    unasked = program("/bin/sh", "-c", 'test -z "$ANNEX_STATS_FILE"')
    assert sample.run(unasked, context, "").support_cpu_s == 0
    often = program("/bin/sh", "-c", 'test -z "$ANNEX_STATS"', times=3)
    assert sample.run(often, context, "", {}, has_support=True).support_cpu_s == 0


def test_bound_to_the_cpus_asked_for_and_nobody_else(program, context):
    before = os.sched_getaffinity(0)
    one = min(before)
    asks = program("/bin/grep", "Cpus_allowed_list", "/proc/self/status", output=lambda out: out.decode().split()[1])
    assert sample.run(asks, dataclasses.replace(context, cpus=(one,)), "").output == str(one)
    assert os.sched_getaffinity(0) == before
