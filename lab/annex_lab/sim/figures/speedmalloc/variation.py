"""Figure 1: how much hangs on the allocator, and through what."""

from dataclasses import replace

from annex_lab import stats
from annex_lab.sim.campaign import count_of
from annex_lab.sim.figures.cells import SHARE, Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.speedmalloc import paper
from annex_lab.sim.figures.speedmalloc.common import MANY, PEERS, THREADS, seeds_of, table
from annex_lab.sim.figures.values import Column, Missing, Results, in_row, of, over

PROFILED = "tcmalloc"
TIMES = {"gap-bfs": "(a) time, BFS", "larson": "(b) time, Larson"}
VARIATION = "largest / smallest"
SHARES = {
    "gap-bfs": (
        "(c) share of L2 misses, BFS under TCMalloc",
        {"on lines that the allocator evicted": "l2_misses_conflict", "these and its own": "l2_misses_metadata"},
        "l2_misses",
        paper.CONFLICT_SHARE,
    ),
    "larson": (
        "(d) share of busy cycles, Larson under TCMalloc",
        {"the allocator's synchronization": "allocator_synchronization"},
        "busy_all",
        paper.SYNCHRONIZATION_SHARE,
    ),
}


def _runs(choice: Choice) -> list[Spec]:
    made = []
    for workload in choice.of(TIMES):
        for name in choice.among(PEERS):
            made += each(choice.maker(name, MANY), [workload], choice.seeds)
        if choice.among([PROFILED]):
            for threads in THREADS:
                made += each(choice.maker(PROFILED, threads), [workload], seeds_of(choice, threads))
    return made


def _variation(choice: Choice, results: Results, workload: str) -> Cell:
    cell = Cell(
        TIMES[workload], VARIATION, "time", None, paper=paper.VARIATION[workload], paper_from="Figure 1's caption"
    )
    try:
        by_seed = []
        for seed in choice.seeds:
            times = [results.get(choice.run(workload, name, MANY, seed), "cycles") for name in PEERS]
            by_seed.append(max(times) / min(times))
    except Missing as why:
        return replace(cell, note=str(why))
    return replace(cell, ours=stats.geometric_mean(by_seed), seeds_low=min(by_seed), seeds_high=max(by_seed))


def _cells(choice: Choice, results: Results) -> list[Cell]:
    found = []
    for workload in choice.of(TIMES):
        for name in choice.among(PEERS):
            value = over(of(choice.maker(name, MANY), "cycles"), of(choice.maker(PROFILED, MANY), "cycles"))
            ratio = paper.OVER_JEMALLOC[PROFILED][workload] / paper.OVER_JEMALLOC[name][workload]
            known = {workload: round(ratio, 3)} if name != PROFILED else {}
            place = in_row(f"{name} / {PROFILED}", TIMES[workload])
            column = Column("time", value, known, paper.TABLE)
            found.append(table(choice, results, [column], [workload], place)[0])
        found.append(_variation(choice, results, workload))
    for workload in choice.of(TIMES):
        panel, parts, whole, known = SHARES[workload]
        for threads in THREADS:
            run = choice.maker(PROFILED, threads)
            for series, metric in parts.items():
                column = Column(
                    series,
                    over(of(run, metric), of(run, whole)),
                    {workload: known} if threads == MANY else {},
                    "Figure 1's caption",
                    unit=SHARE,
                )
                place = in_row(count_of(threads, "thread"), panel)
                found.append(table(choice, results, [column], [workload], place, threads)[0])
    return found


FIGURE_1 = Figure(
    "1",
    "How much hangs on the allocator",
    "Times with 16 threads, over TCMalloc's. Conflicts are read narrowly, as misses of the program on lines that the "
    "allocator evicted, and widely, with the allocator's own misses. Synchronization is cycles of locked instructions "
    "and of lines that other cores have, in the allocator's code; waiting in the kernel is idle, and not in it.",
    _runs,
    _cells,
)
