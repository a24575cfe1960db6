"""Real programs that use several threads, on generated inputs."""

from annex_lab.programs import inputs
from annex_lab.programs.inputs import SCRIPTS
from annex_lab.programs.model import Command, Context, Program, pack_output, sorted_output
from annex_lab.programs.on_input import on_input
from annex_lab.programs.single import COMMITS, PYTHON, PYTHON_ENV, git_pack

TEXT = 24_000_000  # bytes


def _script(
    name: str, what: str, interpreter: list[str], script: str, work: int, env: dict[str, str], **more
) -> Program:
    """An interpreter on a script of ours, whose arguments are the amount of work and the number of threads."""

    def run(context: Context) -> Command:
        return Command([*interpreter, str(SCRIPTS / script), str(context.work(work)), str(context.threads)], env=env)

    return Program(name, "multi", what, run, needs=(interpreter[0],), **more)


PROGRAMS = [
    _script(
        "python-threads",
        "objects made by one thread, dropped by another",
        [PYTHON, "-S"],
        "threads.py",
        600000,
        PYTHON_ENV,
    ),
    _script(
        "perl-threads",
        "an interpreter a thread, fed by a queue",
        ["/usr/bin/perl"],
        "threads.pl",
        150,
        {"PERL_HASH_SEED": "0"},
        quick=True,
    ),
    on_input(
        "xz",
        "multi",
        "a text compressed by several threads",
        source="text",
        make=inputs.text,
        work=6_000_000,
        argv=lambda context, text: ["/usr/bin/xz", "-k", "-c", f"-T{context.threads}", "-1", "--block-size=1MiB", text],
        needs=("xz",),
    ),
    on_input(
        "zstd",
        "multi",
        "a text compressed by several threads",
        source="text",
        make=inputs.text,
        work=TEXT,
        argv=lambda context, text: ["/usr/bin/zstd", "-q", "-c", f"-T{context.threads}", "-9", text],
        needs=("zstd",),
        quick=True,
    ),
    on_input(
        "pigz",
        "multi",
        "a text compressed by several threads",
        source="text",
        make=inputs.text,
        work=TEXT,
        argv=lambda context, text: ["/usr/bin/pigz", "-k", "-n", "-c", "-p", context.threads, text],
        needs=("pigz",),
        quick=True,
    ),
    on_input(
        "sort",
        "multi",
        "lines sorted by several threads",
        source="text",
        make=inputs.text,
        work=4 * TEXT,
        argv=lambda context, text: ["/usr/bin/sort", f"--parallel={context.threads}", "-S", "600M", text],
        needs=("sort",),
        env={"LC_ALL": "C"},
        quick=True,
    ),
    on_input(
        "git-pack-threads",
        "multi",
        "objects packed by several threads",
        source="repository",
        make=inputs.git_repository,
        work=COMMITS,
        argv=lambda context, where: git_pack(context.threads, where),
        needs=("git",),
        env=inputs.GIT_ENV,
        output=pack_output,
        quick=True,
    ),
    on_input(
        "ripgrep",
        "multi",
        "a pattern searched in many files",
        source="tree",
        make=inputs.text_tree,
        work=12000,
        argv=lambda context, tree: [
            "/usr/bin/rg",
            "--no-config",
            "-j",
            context.threads,
            "-c",
            "(shot|rats)[a-z]* [a-z]+t",
            tree,
        ],
        needs=("rg",),
        output=sorted_output,
    ),
]
