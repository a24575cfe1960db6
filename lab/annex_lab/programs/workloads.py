"""The allocation patterns of workloads/, as programs."""

from annex_lab.programs.model import Command, Context, Program, workload_output, workload_score


def _workload(
    name: str, suite: str, what: str, *groups: str, quick: bool = False, quick_options: tuple[str, ...] = ()
) -> Program:
    def run(context: Context) -> Command:
        argv = [str(context.workloads / name), "--scale", str(context.scale)]
        if suite == "multi":
            argv += ["--threads", str(context.threads)]
        return Command(argv)

    return Program(
        name,
        suite,
        what,
        run,
        kind="workload",
        output=workload_output,
        score=workload_score,
        groups=groups,
        quick=quick,
        quick_options=quick_options,
    )


SINGLE = [
    _workload("espresso", "single", "two-level logic minimizer", "speedmalloc", quick=True),
    _workload("cfrac", "single", "factorization by continued fractions", "speedmalloc"),
    _workload("glibc-simple", "single", "blocks of one size, in order", "batchit"),
    _workload("large-churn", "single", "buffers of 1 to 64 MiB, replaced and resized"),
    _workload("malloc-large", "single", "blocks of 5 to 25 MiB, twenty alive", "batchit"),
    _workload("tp", "single", "pairs of malloc and free, 32 sizes in turn", "mallacc"),
    _workload("tp-small", "single", "pairs of malloc and free, four small sizes", "mallacc"),
    _workload("sized-deletes", "single", "pairs of new and sized delete", "mallacc"),
    _workload("gauss", "single", "small and medium blocks, never freed", "mallacc", quick=True),
    _workload("gauss-free", "single", "the same, half of them freed at random", "mallacc"),
    _workload("antagonist", "single", "the same, with caches swept between", "mallacc"),
    _workload("hashmap", "single", "a growing hash map", quick=True, quick_options=("--entries=75000", "--maps=20")),
    _workload("bintree", "single", "binary trees built and torn down", quick=True),
    _workload("strings", "single", "text split, sorted, joined", quick=True),
]

MULTI = [
    _workload("larson", "multi", "server threads that hand over to successors", "speedmalloc", quick=True),
    _workload("xmalloc", "multi", "producers allocate, consumers free", "speedmalloc"),
    _workload("cache-scratch", "multi", "passive false sharing", "speedmalloc"),
    _workload("sh6bench", "multi", "overlapping batches of small blocks", "speedmalloc", quick=True),
    _workload("sh8bench", "multi", "bursts that migrate between threads", "speedmalloc"),
    _workload(
        *("mstress", "multi", "waves of threads, migrating objects", "speedmalloc"),
        quick=True,
        quick_options=("--items=10000", "--waves=400"),
    ),
    _workload("alloc-test", "multi", "random slots, Pareto sizes", "speedmalloc"),
    _workload(
        *("gap-bfs", "multi", "breadth-first searches in a graph", "speedmalloc"),
        quick=True,
        quick_options=("--vertices=3276", "--searches=2560"),
    ),
    _workload(
        *("gap-bc", "multi", "betweenness centrality in a graph", "speedmalloc"),
        quick=True,
        quick_options=("--vertices=3276", "--sources=320"),
    ),
    _workload(
        *("nas-dc", "multi", "a data cube's views", "speedmalloc"),
        quick=True,
        quick_options=("--tuples=12500", "--views=2540"),
    ),
    _workload("msgpass", "multi", "message passing with back-pressure", "batchit"),
    _workload("glibc-thread", "multi", "random slots and sizes, a table a thread", "batchit"),
    _workload("cache-thrash", "multi", "active false sharing", "batchit"),
    _workload("rptest", "multi", "mixed sizes, scattered and remote frees", "batchit"),
    _workload("mleak", "multi", "short-lived threads that leave blocks behind", "batchit"),
]
