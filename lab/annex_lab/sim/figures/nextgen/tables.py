"""Tables 1 to 3: what an allocator does to misses, what threads do to them, and a core for the allocator alone."""

from dataclasses import replace

from annex_lab.sim.campaign import count_of
from annex_lab.sim.figures import metrics
from annex_lab.sim.figures.cells import Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.nextgen import paper
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.values import Column, Results, Value, cells, in_row, less, of, over

XALAN, XMALLOC = "xalan", "xmalloc"
# Twice as much changes no ratio of cycles by 2 %; the misses of allocators that go on to fresh memory still grow.
SCALES = {XALAN: 0.16, XMALLOC: 0.004}
START = 0.25  # of xmalloc's work: what a run of so much has is taken off, as its start takes half of one thread's time
ALLOCATORS = ("glibc", "jemalloc", "tcmalloc", "mimalloc2")
BASE = "glibc"
HANDSHAKE, OFFLOAD = "annex-offload-handshake", "annex-offload"
MIMALLOC = "mimalloc2"  # the paper is of 2023
TWO_CORES = 2  # one of them for the allocator

# What the table shows -> what stands for it in the simulator, and the paper's number out of its counters.
EVENTS = {
    "cycles": ("cycles", lambda of: of["cycles"]),
    "instructions": ("instructions", lambda of: of["instructions"]),
    "LLC load misses": (metrics.LLC_LOAD_MISSES, lambda of: of["llc_loads"]),
    "LLC store misses": (metrics.LLC_STORE_MISSES, lambda of: of["llc_stores"]),
    "TLB misses": (metrics.PAGE_WALKS, lambda of: of["dtlb_loads"] + of["dtlb_stores"]),
}


def one(choice: Choice, results: Results, column: Column, workload: str, row: str, panel: str = "") -> list[Cell]:
    """The cell of the one workload that a table is about, with all seeds."""
    return cells(results, column, choice.of([workload]), choice.seeds, in_row(row, panel))[:-1]


def _runs_1(choice: Choice) -> list[Spec]:
    return [
        spec for name in choice.allocators for spec in each(choice.maker(name, 1), choice.of([XALAN]), choice.seeds)
    ]


def _over_base(choice: Choice, name: str, metric: str) -> Value:
    return over(of(choice.maker(name, 1), metric), of(choice.maker(BASE, 1), metric))


def _cells_1(choice: Choice, results: Results) -> list[Cell]:
    if BASE not in choice.allocators:
        return []
    found = []
    for event, (metric, of_paper) in EVENTS.items():
        for name in choice.allocators:
            known = {}
            if name in paper.XALAN and name != BASE:
                known = {XALAN: round(of_paper(paper.XALAN[name]) / of_paper(paper.XALAN[BASE]), 3)}
            column = Column(name, _over_base(choice, name, metric), known, "Table 1")
            found += one(choice, results, column, XALAN, event)
    return found


TABLE_1 = Figure(
    "table1",
    "Misses by allocator",
    "xalan with one thread, over glibc's. The paper counts SPEC's xalancbmk on a machine that it does not name; here "
    "it is Debian's xalan on one of SpeedMalloc's cores, and TLB misses are page walks, of loads and stores together.",
    _runs_1,
    _cells_1,
    unit="over glibc's",
    kind="Table",
)


def _shorter(choice: Choice) -> Choice:
    return replace(choice, scale_factor=choice.scale_factor * START)


def _runs_2(choice: Choice) -> list[Spec]:
    if not choice.among(["tcmalloc"]):
        return []
    return [
        spec
        for asked in (choice, _shorter(choice))
        for threads in paper.THREADS
        for spec in each(asked.maker("tcmalloc", threads), asked.of([XMALLOC]), asked.seeds)
    ]


def _counted(choice: Choice, threads: int, metric: str) -> Value:
    """Without the start, of misses with it: afterwards there are hardly any."""
    whole = of(choice.maker("tcmalloc", threads), metric)
    if metric in (metrics.LLC_LOAD_MISSES, metrics.LLC_STORE_MISSES):
        return whole
    return less(whole, of(_shorter(choice).maker("tcmalloc", threads), metric))


def _cells_2(choice: Choice, results: Results) -> list[Cell]:
    if not choice.among(["tcmalloc"]):
        return []
    found = []
    for event, metric in {
        "cycles": "busy_all",
        "instructions": "instructions",
        "llc_loads": metrics.LLC_LOAD_MISSES,
        "llc_stores": metrics.LLC_STORE_MISSES,
    }.items():
        shown = event.replace("_", " ").replace("llc", "LLC") + (" missed" if event.startswith("llc") else "")
        for threads, counted in zip(paper.THREADS, paper.XMALLOC[event], strict=True):
            known = {XMALLOC: round(counted / paper.XMALLOC[event][0], 3)} if threads > 1 else {}
            runs = [_counted(choice, many, metric) for many in (threads, 1)]
            column = Column(shown, over(*runs), known, "Table 2")
            found += one(choice, results, column, XMALLOC, count_of(threads, "thread"), "over one thread's")
    return found


TABLE_2 = Figure(
    "table2",
    "Misses by threads",
    "xmalloc under TCMalloc, over one thread's; cycles are those of all cores together. Cycles and instructions are "
    "without the program's start (a run of a quarter of the work is taken off); misses are the start's, as afterwards "
    "the last level has all lines. Ours has as much work for each thread more: so many times the calls. The paper's is "
    "an older TCMalloc, on a machine that it does not name.",
    _runs_2,
    _cells_2,
    drawn="lines",
    unit="over one thread's",
    kind="Table",
)


def _runs_3(choice: Choice) -> list[Spec]:
    return [
        spec
        for name in (MIMALLOC, HANDSHAKE, OFFLOAD, "annex")
        for spec in each(choice.maker(name, TWO_CORES), choice.of([XALAN]), choice.seeds)
    ]


def _over_mimalloc(choice: Choice, name: str, metric: str, each_instruction: bool) -> Value:
    mine, theirs = choice.maker(name, TWO_CORES), choice.maker(MIMALLOC, TWO_CORES)
    if not each_instruction:
        return over(of(mine, metric), of(theirs, metric))
    return over(*(over(of(run, metric), of(run, "instructions")) for run in (mine, theirs)))


def _cells_3(choice: Choice, results: Results) -> list[Cell]:
    misses = {
        "TLB misses": (metrics.PAGE_WALKS, paper.MPKI["dtlb"]),
        "LLC load misses": (metrics.LLC_LOAD_MISSES, paper.MPKI["llc_loads"]),
        "LLC store misses": (metrics.LLC_STORE_MISSES, paper.MPKI["llc_stores"]),
    }
    rows = {"time": ("cycles", False, paper.SECONDS)}
    rows |= {f"{what} per 1,000 instructions": (metric, True, known) for what, (metric, known) in misses.items()}
    rows |= {f"{what} in all": (metric, False, None) for what, (metric, _) in misses.items()}
    found = []
    for row, (metric, each_instruction, pair) in rows.items():
        for name in (HANDSHAKE, OFFLOAD, "annex"):
            known = {XALAN: round(pair[1] / pair[0], 3)} if pair and name == HANDSHAKE else {}
            column = Column(name, _over_mimalloc(choice, name, metric, each_instruction), known, "Table 3")
            found += one(choice, results, column, XALAN, row, "over mimalloc's")
    return found


TABLE_3 = Figure(
    "table3",
    "The allocator on a core of its own, in software",
    "xalan on two cores, over mimalloc 2: Annex's offload flavour with the paper's protocol, in which every call waits "
    "for the support core (handshake), with its own, and Annex on the program's core. Misses are of both cores, and so "
    "are instructions: a support core that polls has many, and few misses, so that misses per 1,000 instructions fall "
    "where none is saved; how many there are in all is beside it. The paper's machine has weaker ordering.",
    _runs_3,
    _cells_3,
    unit="over mimalloc's",
    kind="Table",
)
