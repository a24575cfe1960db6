"""Programs that read one generated file (or folder): the input is made once, then the program is run on it."""

from collections.abc import Callable
from pathlib import Path

from annex_lab.programs import inputs
from annex_lab.programs.model import Command, Context, Program, whole_output

Make = Callable[[Path, int], None]
Arguments = Callable[[Context, Path], list]


def on_input(
    name: str,
    suite: str,
    what: str,
    *,
    source: str,
    make: Make,
    work: int,
    argv: Arguments,
    needs: tuple[str, ...],
    env: dict[str, str] | None = None,
    stdin: bool = False,
    output: Callable[[bytes], str] = whole_output,
    **more,
) -> Program:
    """`source` names the input, which programs may share; `stdin` gives it as standard input too; `more` is the
    Program's."""

    def path(context: Context) -> Path:
        return inputs.place(context, source, work)

    def prepare(context: Context) -> None:
        inputs.ensure(path(context), lambda target: make(target, context.work(work)))

    def run(context: Context) -> Command:
        where = path(context)
        return Command([str(part) for part in argv(context, where)], env=env or {}, stdin=where if stdin else None)

    return Program(name, suite, what, run, needs=needs, prepare=prepare, output=output, **more)
