"""The allocation patterns of workloads/, as programs."""

from annex_lab.programs.model import Command, Context, Program, workload_output, workload_score


def _workload(name: str, suite: str, what: str) -> Program:
    def run(context: Context) -> Command:
        argv = [str(context.workloads / name), "--scale", str(context.scale)]
        if suite == "multi":
            argv += ["--threads", str(context.threads)]
        return Command(argv)

    return Program(name, suite, what, run, kind="workload", output=workload_output, score=workload_score)


SINGLE = [
    _workload("espresso", "single", "two-level logic minimizer"),
    _workload("cfrac", "single", "factorization by continued fractions"),
    _workload("glibc-simple", "single", "blocks of one size, in order"),
    _workload("hashmap", "single", "a growing hash map"),
    _workload("bintree", "single", "binary trees built and torn down"),
    _workload("strings", "single", "text split, sorted, joined"),
]

MULTI = [
    _workload("larson", "multi", "server threads that hand over to successors"),
    _workload("xmalloc", "multi", "producers allocate, consumers free"),
    _workload("msgpass", "multi", "message passing with back-pressure"),
    _workload("sh6bench", "multi", "overlapping batches of small blocks"),
    _workload("sh8bench", "multi", "bursts that migrate between threads"),
    _workload("mstress", "multi", "waves of threads, migrating objects"),
    _workload("cache-scratch", "multi", "passive false sharing"),
    _workload("alloc-test", "multi", "random slots, Pareto sizes"),
    _workload("rptest", "multi", "mixed sizes, scattered and remote frees"),
]
