"""Whether others used the machine."""

import os
import subprocess
import time

from annex_lab import quiet


def test_busy_counts_all_but_idle_and_waiting():
    tick = 1 / os.sysconf("SC_CLK_TCK")
    stat = "cpu  10 20 30 4000 500 6 7 8 9 9"
    assert abs(quiet.busy_seconds(stat) - (10 + 20 + 30 + 6 + 7 + 8) * tick) < 1e-9


def test_what_is_disturbed():
    assert not quiet.disturbed(0.02, 0.1)  # the coarseness of the ticks
    assert not quiet.disturbed(0.06, 1.0)
    assert quiet.disturbed(0.08, 1.0)
    assert quiet.disturbed(0.5, 10.0)


def test_our_own_children_are_not_others():
    watch = quiet.Watch().start()
    subprocess.run(["/bin/sh", "-c", "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done"], check=True)
    assert watch.stop() < watch.wall * os.cpu_count()  # whatever else runs here
    assert watch.own > 0.1


def test_another_process_is_noticed():
    busy = subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"])
    try:
        time.sleep(0.1)
        watch = quiet.Watch().start()
        time.sleep(0.5)
        foreign = watch.stop()
    finally:
        busy.kill()
        busy.wait()
    assert foreign > 0.25
    assert quiet.disturbed(foreign, watch.wall)


def test_patience_shrinks_in_vain_and_comes_back():
    patience = quiet.Patience(4.0, 2)
    assert (patience.wait_s, patience.retries) == (4.0, 2)
    for _ in range(4):
        patience.learn(disturbed=True)
    assert patience.wait_s < 0.5 and patience.retries == 0
    patience.learn(disturbed=False)
    assert (patience.wait_s, patience.retries) == (4.0, 2)


def test_waiting_ends_with_the_patience(monkeypatch):
    monkeypatch.setattr(quiet.Watch, "stop", lambda self: 1.0)
    slept = []
    monkeypatch.setattr(quiet.time, "monotonic", lambda: sum(slept))
    monkeypatch.setattr(quiet.time, "sleep", slept.append)
    assert quiet.wait_until_quiet(0.25) is False
    assert slept == [0.1, 0.1, 0.1]
