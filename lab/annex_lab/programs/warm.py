"""Mallacc's microbenchmarks of fixed sizes after a warm-up, so that lists have several blocks. By name."""

from annex_lab.programs.model import Command, Context, Program, workload_output, workload_score

BLOCKS = 8  # of each size, allocated and freed before
PAIRS = {
    "tp": 150_000_000,
    "tp-small": 150_000_000,
    "sized-deletes": 120_000_000,
}  # as the workloads have by themselves


def name_of(workload: str) -> str:
    return f"{workload}-warm"


def _warm(workload: str) -> Program:
    def run(context: Context) -> Command:
        options = ["--pairs", str(context.work(PAIRS[workload])), "--warm", str(BLOCKS)]
        return Command([str(context.workloads / workload), *options])

    return Program(
        name_of(workload),
        "single",
        f"{workload}, after {BLOCKS} blocks of each size have been allocated and freed",
        run,
        kind="workload",
        output=workload_output,
        score=workload_score,
        by_name_only=True,
    )


PROGRAMS = [_warm(workload) for workload in PAIRS]
