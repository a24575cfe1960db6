"""The programs that are measured: what they are (model), and the lists of them by kind."""

from annex_lab.programs import parallel, replays, servers, single, small, spaced, warm, workloads
from annex_lab.programs.model import Program

# The papers whose programs are here, or real ones that stand for theirs (SPEC's cannot be had freely).
GROUPS = {
    "speedmalloc": "SpeedMalloc: Mimalloc-bench, GAP, NAS and Redis",
    "mallacc": "Mallacc: its microbenchmarks, perl, xalan and xapian",
    "batchit": "BatchIt: message passing, and what it takes from mimalloc-bench",
    "nextgen": "NextGen-Malloc: xalan",
    "exgen": "Exgen-Malloc: programs standing for SPEC's that allocate much",
}
SUITES = {
    "quick": "short runs of some, real and not, of one thread and of several, for a first answer",
    "papers": "what the papers measure, or what stands for it",
    "real": "real programs on generated inputs",
    "single": "those that allocate with one thread",
    "multi": "those that allocate with several threads",
    "all": "all",
    **GROUPS,
}


class UnknownProgram(Exception):
    pass


def all_programs() -> list[Program]:
    lists = (
        single.PROGRAMS,
        workloads.SINGLE,
        small.PROGRAMS,
        replays.PROGRAMS,
        parallel.PROGRAMS,
        servers.PROGRAMS,
        workloads.MULTI,
        spaced.PROGRAMS,
        warm.PROGRAMS,
    )
    return [program for programs in lists for program in programs]


def _is_of(program: Program, suite: str) -> bool:
    if suite == "quick":
        return program.quick
    if suite == "papers":
        return bool(program.groups)
    if suite == "real":
        return program.kind == "program"
    return suite in ("all", program.suite, *program.groups)


def choose(suite: str, names: list[str] | None = None) -> list[Program]:
    """The programs of a suite (a key of SUITES), or those named, whatever their suite."""
    programs = all_programs()
    if not names:
        if suite not in SUITES:
            raise UnknownProgram(f"no suite is called {suite}; there are: {', '.join(SUITES)}")
        chosen = [p for p in programs if _is_of(p, suite) and not p.by_name_only]
        return [p.with_options(p.quick_options) for p in chosen] if suite == "quick" else chosen
    by_name = {program.name: program for program in programs}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise UnknownProgram(f"no program is called {', '.join(unknown)}; there are: {', '.join(by_name)}")
    return [by_name[name] for name in names]
