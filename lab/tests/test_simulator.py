"""What is said where nothing can be simulated, and what the tests make of it."""

import re
import subprocess
import sys

import pytest
import simulator
from typer.testing import CliRunner

from annex_lab import paths
from annex_lab.cli import app
from annex_lab.sim import run


@pytest.mark.parametrize("missing", ["QEMU", "PLUGIN"])
def test_one_line_says_what_is_the_matter(missing, monkeypatch):
    monkeypatch.setattr(run, missing, paths.ROOT / "build" / "no-such-file")
    said = "the simulator is not built (build/no-such-file is missing): make sim"
    with pytest.raises(run.CannotRun, match=re.escape(said)):
        run.qemu()
    for arguments in (["--check"], ["--", sys.executable, "--version"]):
        done = CliRunner().invoke(app, ["sim", *arguments])
        assert done.exit_code == 2
        assert done.output == f"annex-lab sim: {said}\n"


def test_what_can_be_installed_is_asked_for():
    assert not simulator.left_out(None, True)
    assert simulator.left_out(run.CannotRun("not installed"), False)
    assert not simulator.left_out(run.CannotRun("not installed"), True)


@simulator.needed
def test_the_check_is_silent_where_all_is_well():
    done = subprocess.run([sys.executable, "-m", "annex_lab.cli", "sim", "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
