"""What is said where nothing can be simulated, and what the tests make of it."""

import subprocess
import sys

import pytest
import simulator

from annex_lab.sim import run

PLUGINS = "-plugin              QEMU_PLUGIN       [file=]<file>[,<argname>=<argvalue>]"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Another QEMU than this system's, that says of itself what it is told to; None: there is none."""

    def install(version: str | None, options: str = "") -> None:
        file = tmp_path / run.QEMU
        file.unlink(missing_ok=True)
        if version is not None:
            file.write_text(
                "#!/bin/sh\n"
                f'if [ "$1" = --version ]; then echo "qemu-x86_64 version {version}"; else echo "{options}"; fi\n'
            )
            file.chmod(0o755)
        run.version_of.cache_clear()
        run.has_plugins.cache_clear()

    monkeypatch.setenv("PATH", str(tmp_path))
    yield install
    run.version_of.cache_clear()
    run.has_plugins.cache_clear()


@pytest.mark.parametrize(
    ("version", "options", "kind", "words"),
    [
        (None, "", run.CannotRun, "not installed"),
        ("10.0.2 (Debian 1:10.0.2+ds-2)", "", run.OtherQemu, "10.0 has no plugins here"),
        ("8.2.2 (Debian 1:8.2.2+ds)", PLUGINS, run.OtherQemu, "is of version 8.2"),
    ],
)
def test_one_line_says_what_is_the_matter(installed, version, options, kind, words):
    installed(version, options)
    with pytest.raises(run.CannotRun, match=words) as caught:
        run.qemu()
    assert caught.type is kind
    for arguments in (["--check"], ["--", sys.executable, "--version"]):
        argv = [sys.executable, "-m", "annex_lab.cli", "sim", *arguments]
        done = subprocess.run(argv, capture_output=True, text=True)
        assert done.returncode == 2 and done.stdout == ""
        assert done.stderr.splitlines() == [f"annex-lab sim: {caught.value}"]


def test_what_can_be_installed_is_asked_for():
    assert not simulator.left_out(None, True)
    assert simulator.left_out(run.CannotRun("not installed"), False)
    assert not simulator.left_out(run.CannotRun("not installed"), True)
    assert simulator.left_out(run.OtherQemu("without plugins"), True)


@simulator.needed
def test_the_check_is_silent_where_all_is_well():
    done = subprocess.run([sys.executable, "-m", "annex_lab.cli", "sim", "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
