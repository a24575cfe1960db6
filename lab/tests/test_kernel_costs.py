"""What the kernel takes on this machine, and what becomes of it in a machine file."""

import subprocess

import pytest

from annex_lab import native, paths
from annex_lab.sim import kernel_costs, machines

# In ns; a hand-over is a wake (200), a wait and a woken thread (300 each), and a switch (700).
TIMES = {
    "plain": 100.0, "clock-vdso": 20.0, "yield": 400.0, "yield-switch": 2200.0, "futex-wake": 200.0,
    "hand-over": 1500.0, "create": 5000.0, "create-join": 14000.0, "fault": 1200.0, "clear": 30.0,
    "munmap-page": 200.0, "dontneed-page": 300.0, "dontneed-one": 1000.0, "dontneed-one-beside": 3500.0,
}  # fmt: skip


def test_what_a_kind_takes_beside_others_is_a_difference():
    found = kernel_costs.costs(TIMES)
    assert found["system.call_us"] == pytest.approx(0.1)
    assert found["system.switch_us"] == pytest.approx(0.7)
    assert found["system.futex_wait_us"] == pytest.approx(0.3)
    assert found["system.exit_us"] == pytest.approx(14 - 5 - 0.6 - 1.4)
    assert found["system.page_us"] == pytest.approx(0.25)
    assert found["system.shoot_down_us"] == pytest.approx(2.5)
    assert found["pages.fault_us"] == pytest.approx(1.17)


def test_what_the_machine_cannot_show_is_left_out():
    found = kernel_costs.costs(TIMES)
    assert "pages.huge_fault_us" not in found  # no kernel that gives huge pages
    assert "system.wake_us" not in found  # no second CPU


def test_noise_makes_nothing_negative():
    assert kernel_costs.costs({**TIMES, "dontneed-one": 4000.0})["system.shoot_down_us"] == 0


def test_the_lines_are_a_machine_file(tmp_path):
    lines = kernel_costs.toml(TIMES)
    assert lines.index("[system]") < lines.index("switch_us = 0.700") < lines.index("[pages]")
    file = tmp_path / "mine.toml"
    file.write_text("\n".join(lines) + "\n")
    tool = paths.RELEASE / "annex-machine"
    done = subprocess.run([tool, "--presets", machines.PRESETS, file], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_parameter_is_one_of_the_machines():
    told = subprocess.run([paths.RELEASE / "annex-machine", "--parameters"], capture_output=True, text=True).stdout
    for cost in kernel_costs.COSTS:
        assert f"`{cost.name}`" in told


def test_the_program_times_every_kind_that_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_costs, "KEPT", tmp_path / "kernel-costs.json")
    if not (paths.BENCH / "kernel-costs").exists():
        native.kernel_costs()
    times = kernel_costs.times()
    assert kernel_costs.times() == times  # kept
    found = kernel_costs.costs(times)
    assert 0.01 < found["system.call_us"] < 10
    assert found["pages.fault_us"] > found["system.clock_us"]
