"""What the tests share: a context in a temporary folder and quick programs."""

import pytest

from annex_lab.programs.model import Command, Context, Program


@pytest.fixture
def context(tmp_path):
    return Context(
        data=tmp_path / "data", scratch=tmp_path / "scratch" / "run", workloads=tmp_path, scale=1.0, threads=2
    )


@pytest.fixture
def program():
    """Makes a program from a command line; `times` as in Command."""

    def make(*argv: str, name: str = "quick", suite: str = "single", times: int = 1, env=None, **more) -> Program:
        return Program(name, suite, "a test", lambda _context: Command(list(argv), env=env or {}, times=times), **more)

    return make
