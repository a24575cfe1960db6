"""Real single-threaded programs on generated inputs."""

import subprocess

from annex_lab.programs import inputs
from annex_lab.programs.inputs import SCRIPTS
from annex_lab.programs.model import Command, Context, Program
from annex_lab.programs.on_input import on_input

PYTHON = inputs.SYSTEM_PYTHON
PYTHON_ENV = {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}  # Python's own small-object allocator off
COMMITS = 1500


def _script(
    name: str, what: str, interpreter: list[str], script: str, work: int, env: dict[str, str] | None = None, **more
):
    """An interpreter on a script of ours, whose one argument is the amount of work."""

    def run(context: Context) -> Command:
        return Command([*interpreter, str(SCRIPTS / script), str(context.work(work))], env=env or {})

    return Program(name, "single", what, run, needs=(interpreter[0],), **more)


def _cc1plus() -> str:
    """The compiler proper: the driver g++ only starts it."""
    return subprocess.run(["g++", "-print-prog-name=cc1plus"], capture_output=True, text=True).stdout.strip()


def git_pack(threads: int, repository) -> list:
    return [
        "/usr/bin/git",
        "-C",
        repository,
        "-c",
        f"pack.threads={threads}",
        "pack-objects",
        "--all",
        "--stdout",
        "--no-reuse-delta",
        "-q",
    ]


def _xapian_search(context: Context, index) -> list:
    return [PYTHON, SCRIPTS / "xapian_search.py", index, context.work(12000)]


PROGRAMS = [
    on_input(
        "xapian",
        "single",
        "thousands of searches in an index",
        source="xapian",
        make=inputs.search_index,
        work=8_000_000,
        argv=_xapian_search,
        needs=(PYTHON, "/usr/lib/python3/dist-packages/xapian/__init__.py"),
        env={"PYTHONHASHSEED": "0"},
        groups=("mallacc",),
    ),
    on_input(
        "sqlite3",
        "single",
        "tables, indexes, joins in memory",
        source="sqlite3.sql",
        make=inputs.sql_script,
        work=60000,
        argv=lambda _context, _script: ["/usr/bin/sqlite3", "-batch", ":memory:"],
        stdin=True,
        needs=("sqlite3",),
        groups=("exgen",),
        quick=True,
    ),
    _script(
        "python-dicts",
        "dicts, lists, strings",
        [PYTHON, "-S"],
        "dicts.py",
        40000,
        PYTHON_ENV,
        groups=("exgen",),
        quick=True,
    ),
    _script(
        "python-objects",
        "classes, syntax trees, JSON",
        [PYTHON, "-S"],
        "objects.py",
        300,
        PYTHON_ENV,
        groups=("exgen",),
    ),
    _script(
        "perl-hashes",
        "hashes, strings, sorting",
        ["/usr/bin/perl"],
        "hashes.pl",
        120000,
        {"PERL_HASH_SEED": "0"},
        groups=("mallacc",),
        quick=True,
    ),
    _script("lua-tables", "tables, closures, strings", ["/usr/bin/lua5.4"], "tables.lua", 50000, groups=("exgen",)),
    _script(
        "ruby-objects", "objects, arrays, hashes, strings", ["/usr/bin/ruby", "--disable-gems"], "objects.rb", 45000
    ),
    on_input(
        "gcc-cc1plus",
        "single",
        "the C++ compiler proper, -O2",
        source="cxx.ii",
        make=inputs.cxx_source,
        work=12,
        argv=lambda _context, source: [_cc1plus(), "-quiet", "-O2", "-std=gnu++17", source, "-o", "-"],
        needs=("g++",),
        groups=("exgen",),
    ),
    on_input(
        "xalan",
        "single",
        "an XSLT transformation",
        source="store.xml",
        make=inputs.xml_document,
        work=6000,
        argv=lambda _context, document: ["/usr/bin/xalan", "-in", document, "-xsl", SCRIPTS / "report.xsl"],
        needs=("xalan",),
        groups=("mallacc", "nextgen", "exgen"),
        quick=True,
    ),
    on_input(
        "xmllint",
        "single",
        "XML parsed into a tree and printed",
        source="store.xml",
        make=inputs.xml_document,
        work=80000,
        argv=lambda _context, document: ["/usr/bin/xmllint", "--format", document],
        needs=("xmllint",),
        quick=True,
    ),
    on_input(
        "jq",
        "single",
        "JSON grouped, sorted, printed",
        source="store.json",
        make=inputs.json_document,
        work=12000,
        argv=lambda _context, document: ["/usr/bin/jq", "-f", SCRIPTS / "report.jq", document],
        needs=("jq",),
    ),
    on_input(
        "z3",
        "single",
        "a solver that colours a graph",
        source="problem.smt2",
        make=inputs.smt_problem,
        work=4400,
        argv=lambda _context, problem: ["/usr/bin/z3", problem],
        needs=("z3",),
        groups=("exgen",),
    ),
    on_input(
        "ghostscript",
        "single",
        "pages drawn to a bitmap",
        source="pages.ps",
        make=inputs.postscript,
        work=12,
        argv=lambda _context, pages: [
            "/usr/bin/gs",
            "-q",
            "-dNOPAUSE",
            "-dBATCH",
            "-dSAFER",
            "-sDEVICE=pngmono",
            "-r72",
            "-o",
            "-",
            pages,
        ],
        needs=("gs",),
        groups=("exgen",),
    ),
    on_input(
        "git-log",
        "single",
        "history with differences",
        source="repository",
        make=inputs.git_repository,
        work=COMMITS,
        argv=lambda _context, where: ["/usr/bin/git", "-C", where, "log", "-p", "--stat", "-M"],
        needs=("git",),
        env=inputs.GIT_ENV,
        groups=("exgen",),
    ),
    on_input(
        "git-pack",
        "single",
        "objects packed by one thread",
        source="repository",
        make=inputs.git_repository,
        work=COMMITS,
        argv=lambda _context, where: git_pack(1, where),
        needs=("git",),
        env=inputs.GIT_ENV,
        groups=("exgen",),
    ),
    on_input(
        "gawk",
        "single",
        "words counted in associative arrays",
        source="text",
        make=inputs.text,
        work=6_000_000,
        argv=lambda _context, text: ["/usr/bin/gawk", "-f", SCRIPTS / "words.awk", text],
        needs=("gawk",),
        env={"LC_ALL": "C"},
    ),
]
