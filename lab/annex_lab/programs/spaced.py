"""Allocation with other work between: glibc-thread with small blocks, whose share of allocation is chosen. By name."""

from annex_lab.programs.model import Command, Context, Program, workload_output, workload_score

STEPS = (0, 30, 100, 300, 1000, 3000)  # of some ten instructions, between two replacements
REPLACEMENTS = 40_000  # of each thread


def name_of(steps: int) -> str:
    return f"glibc-thread-work-{steps}"


def _spaced(steps: int) -> Program:
    def run(context: Context) -> Command:
        options = {"threads": context.threads, "replacements": context.work(REPLACEMENTS), "max": 1024, "work": steps}
        options["filled"] = 1  # there are fewer replacements than blocks in a simulated run
        argv = [str(context.workloads / "glibc-thread")]
        return Command([*argv, *(word for name, value in options.items() for word in (f"--{name}", str(value)))])

    what = f"glibc-thread with blocks of up to 1 KiB, and {steps} steps of other work between two replacements"
    return Program(
        name_of(steps),
        "multi",
        what,
        run,
        kind="workload",
        output=workload_output,
        score=workload_score,
        by_name_only=True,
    )


PROGRAMS = [_spaced(steps) for steps in STEPS]
