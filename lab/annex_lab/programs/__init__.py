"""The programs that are measured: what they are (model), and the lists of them by kind."""

from annex_lab.programs import parallel, servers, single, small, workloads
from annex_lab.programs.model import Program


class UnknownProgram(Exception):
    pass


def all_programs() -> list[Program]:
    lists = (single.PROGRAMS, workloads.SINGLE, small.PROGRAMS, parallel.PROGRAMS, servers.PROGRAMS, workloads.MULTI)
    return [program for programs in lists for program in programs]


def choose(suite: str, names: list[str] | None = None) -> list[Program]:
    """The programs of a suite ("single", "multi" or "all"), or those named, whatever their suite."""
    programs = all_programs()
    if not names:
        return [p for p in programs if suite in ("all", p.suite) and not p.by_name_only]
    by_name = {program.name: program for program in programs}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise UnknownProgram(f"no program is called {', '.join(unknown)}; there are: {', '.join(by_name)}")
    return [by_name[name] for name in names]
