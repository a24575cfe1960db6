"""Small, short programs: what an allocator costs before it has done anything. Each sample runs them many times."""

from annex_lab.programs.model import Command, Context, Program

MALLOC = {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}  # Python's own small-object allocator off


def _small(name: str, what: str, argv: list[str], times: int, env: dict[str, str] | None = None, **more) -> Program:
    def run(_context: Context) -> Command:
        return Command(argv, env=env or {}, times=times)

    return Program(name, "single", what, run, needs=(argv[0],), **more)


PROGRAMS = [
    _small("ls", "a directory listing", ["/bin/ls", "-l", "/usr/lib"], 100),
    _small(
        "python-hello", "python3 that prints one number", ["/usr/bin/python3", "-c", "print(1)"], 20, MALLOC, quick=True
    ),
    _small("perl-hello", "perl that does nothing", ["/usr/bin/perl", "-e", "1"], 100),
    _small(
        "sqlite-hello", "one small query", ["/usr/bin/sqlite3", ":memory:", "select upper('x') || sqlite_version()"], 50
    ),
    _small("git-version", "git that prints its version", ["/usr/bin/git", "--version"], 100),
]
