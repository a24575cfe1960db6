"""6.2.1 and 6.2.2: misses with one thread, instructions, and what the time that is saved is made of.

All of it is of runs that Figures 8 to 11 have, too.
"""

from dataclasses import dataclass

from annex_lab.sim.figures import metrics
from annex_lab.sim.figures.cells import SHARE, Cell
from annex_lab.sim.figures.figure import Choice, Figure, each
from annex_lab.sim.figures.runs import Spec
from annex_lab.sim.figures.speedmalloc import paper
from annex_lab.sim.figures.speedmalloc.common import (
    ATOP,
    MANY,
    MULTI,
    OURS,
    SINGLE,
    SUPPORT,
    accelerators,
    both,
    called,
    in_software,
    of_accelerators,
    offloaded,
    table,
)
from annex_lab.sim.figures.speedmalloc.costs import BASE, pairs
from annex_lab.sim.figures.values import AVERAGE, MEAN, Column, Results, Value, in_panel, less, of, over

CORES = ("main", "all")
FEWER = f"instructions saved, of {BASE}'s, in software"
WHOLE, L2, LOCKED, WAITING, REST = (
    "time saved",
    "of it: misses of the L2",
    "of it: locked instructions",
    "of it: waiting for units",
    "of it: the rest",
)


# --- 6.2.1: with one thread -----------------------------------------------------------------------------------------


def _runs_1(choice: Choice) -> list[Spec]:
    return [
        spec
        for name in choice.allocators
        for hardware in ("", SUPPORT)
        for spec in each(choice.maker(name, 1, hardware), choice.of(SINGLE), choice.seeds[:1])
    ]


def _cells_1(choice: Choice, results: Results) -> list[Cell]:
    found = []
    for which in CORES:
        metric, columns = f"l2_stalls_{which}", []
        for mine, name in pairs(choice):
            value = over(of(choice.maker(mine, 1, SUPPORT), metric), of(choice.maker(name, 1), metric))
            known = {MEAN: paper.SINGLE_L2_REMAINS[name]} if name in paper.SINGLE_L2_REMAINS else {}
            columns.append(Column(f"{offloaded(mine)} / {name}", value, known, "6.2.1"))
        found += table(choice, results, columns, choice.of(SINGLE), in_panel(f"what remains, {which} cores"), 1)
    return found


SECTION_6_2_1 = Figure(
    "6.2.1",
    "L2 miss cycles with one thread",
    "The workloads of Figure 8, counted as in Figure 10: cycles that cores waited for misses of the L2, offloaded over "
    "software. Main cores are those that threads run on; of the support core, which has no L2, misses of its L1 count.",
    _runs_1,
    _cells_1,
    unit="what remains",
    kind="Section",
)

# --- 6.2.2: with 16 threads -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """An allocator on the support core, and what it is set against: software, or an accelerator at each core."""

    mine: str
    base: str
    hardware: str = ""

    @property
    def called(self) -> str:
        return f"{offloaded(self.mine)}, of {called(self.base, self.hardware)}'s"

    @property
    def paper_name(self) -> str:
        return self.hardware or self.base

    def here(self, choice: Choice, metric: str) -> Value:
        return of(choice.maker(self.mine, MANY, SUPPORT), metric)

    def there(self, choice: Choice, metric: str) -> Value:
        return of(choice.maker(self.base, MANY, self.hardware), metric)

    def saved(self, choice: Choice, metric: str, whole: str) -> Value:
        """What is fewer here, of the whole there."""
        return over(less(self.there(choice, metric), self.here(choice, metric)), self.there(choice, whole))


def _all_pairs(choice: Choice) -> list[Pair]:
    found = [Pair(mine, base) for mine, base in pairs(choice)]
    if OURS in choice.allocators:
        found += [Pair(OURS, ATOP[hardware], hardware) for hardware in accelerators(choice)]
    return found


def _runs_2(choice: Choice) -> list[Spec]:
    workloads = choice.of(MULTI)
    return [*both(choice, workloads, MANY), *of_accelerators(choice, workloads, MANY)]


def _share(series: str, value: Value, known: dict[str, float], name: str) -> Column:
    by_mean = {AVERAGE: known[name]} if name in known else {}
    return Column(series, value, by_mean, "6.2.2", mean=AVERAGE, unit=SHARE)


def _parts(choice: Choice, pair: Pair) -> dict[str, Value]:
    whole = pair.saved(choice, "cycles", "cycles")

    def of_main_cores(metric: str) -> Value:
        """All of them together have so many times the cycles."""
        part = pair.saved(choice, metric, "cycles")
        return lambda results, workload, seed: part(results, workload, seed) / MANY

    parts = {
        L2: of_main_cores("l2_stalls_main"),
        LOCKED: of_main_cores("atomics_main"),
        WAITING: of_main_cores(metrics.UNIT_WAITS),
    }
    rest = whole
    for part in parts.values():
        rest = less(rest, part)
    return {WHOLE: whole, **parts, REST: rest}


def _cells_2(choice: Choice, results: Results) -> list[Cell]:
    workloads = choice.of(MULTI)
    known = {WHOLE: paper.TIME_SAVED, L2: paper.L2_SAVED, LOCKED: paper.LOCKED_SAVED}
    by_pair = {pair: _parts(choice, pair) for pair in _all_pairs(choice)}
    found = []
    for part in (WHOLE, L2, LOCKED, WAITING, REST):
        columns = [
            # The paper's are of SpeedMalloc against each, not of an allocator against itself.
            _share(pair.called, parts[part], known.get(part, {}) if pair.mine == OURS else {}, pair.paper_name)
            for pair, parts in by_pair.items()
        ]
        found += table(choice, results, columns, workloads, in_panel(part))
    fewer = []
    for name in in_software(choice):
        if name != BASE:
            runs = [of(choice.maker(one, MANY), "instructions") for one in (BASE, name)]
            fewer.append(_share(name, over(less(*runs), runs[0]), paper.INSTRUCTIONS_SAVED, name))
    found += table(choice, results, fewer, workloads, in_panel(FEWER))
    for which, metric in (("main", metrics.MAIN_INSTRUCTIONS), ("all", "instructions")):
        columns = [
            _share(
                pair.called,
                pair.saved(choice, metric, metric),
                paper.INSTRUCTIONS_SAVED_OFFLOADED if pair.mine == OURS else {},
                pair.paper_name,
            )
            for pair in by_pair
        ]
        found += table(choice, results, columns, workloads, in_panel(f"instructions saved, {which} cores"))
    return found


SECTION_6_2_2 = Figure(
    "6.2.2",
    "What the time that is saved is made of, and instructions",
    f"{MANY} threads; means are arithmetic. Time saved is of cycles from start to end, over each in software or with "
    "an accelerator. Its parts are main cores' cycles that are fewer with the support core, of all that these cores "
    "have from start to end without it, idle ones too, so that parts and rest add up; below zero they are more. Stalls "
    "of misses are counted once, locked instructions also where others run beside them, so that the two may overlap; "
    "how the paper took its parts it doesn't say. The rest is the difference: instructions, page faults, idling. "
    "Instructions are without the kernel's, which the paper's have; of which cores those are that the support core "
    "saves there, it doesn't say.",
    _runs_2,
    _cells_2,
    unit="share of the time there",
    kind="Section",
    pictured=lambda panel: not panel.startswith("instructions"),
)
