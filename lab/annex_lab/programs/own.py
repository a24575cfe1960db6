"""A command of the user's own as a program: run where the user stands, with the user's environment."""

import os
import shutil
from pathlib import Path

from annex_lab.programs.model import Command, Context, Program


class NotFound(Exception):
    pass


def of_command(argv: list[str], stdin: Path | None = None) -> Program:
    """The whole output is compared with that under glibc, unless it varies from run to run there as well."""
    executable = shutil.which(argv[0])
    if executable is None:
        raise NotFound(f"{argv[0]}: no such program")
    here = Path.cwd()
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    command = Command([str(Path(executable).absolute()), *argv[1:]], environment, stdin and stdin.resolve(), cwd=here)

    def run(_context: Context) -> Command:
        return command

    return Program(Path(executable).name, "own", " ".join(argv), run, may_vary=True)
