"""Table 3's workloads again with one thing changed: on another machine, or under another version of an allocator.

What is said to be the reason for an order of allocators is a claim of what happens without it. So each supposed cause
is removed, and the rest of the run stays as it is. Where the order stays, too, that was not the cause.
"""

from dataclasses import dataclass
from pathlib import Path

from annex_lab.report import table_head, table_row
from annex_lab.sim import table3
from annex_lab.sim.campaign import Campaign, mean_of

# Allocators that take the place of one of the table's.
IN_PLACE_OF = {
    "jemalloc-1-arena": "jemalloc",
    "jemalloc-no-purge": "jemalloc",
    "gperftools": "tcmalloc",
    "mimalloc2": "mimalloc3",
    "mimalloc3-no-purge": "mimalloc3",
}
_TABLES = (table3.BASE, *table3.ALLOCATORS)


@dataclass(frozen=True)
class Variation:
    """One change: where it ran, and who ran there in the place of each of the table's allocators."""

    label: str
    place: tuple[str, int]
    allocators: dict[str, str]


@dataclass(frozen=True)
class Outcome:
    row: table3.Row
    spread: float  # of the speedups, over the seeds: the larger one

    @property
    def order(self) -> str:
        return table3.order(self.row.here)


def variations(campaign: Campaign) -> list[Variation]:
    """The unchanged one first; only it, where nothing was changed."""
    same = {name: name for name in _TABLES}
    places = [place for place in campaign.places if place[1] == table3.THREADS]
    base = next((place for place in table3.PLACES if place in places), None)
    if base is None:
        return []
    found = [Variation("as it is", base, same)]
    found += [Variation(Path(place[0]).stem, place, same) for place in places if place not in table3.PLACES]
    found += [
        Variation(name, base, {**same, IN_PLACE_OF[name]: name}) for name in campaign.allocators if name in IN_PLACE_OF
    ]
    return found


def outcome(campaign: Campaign, workload: str, variation: Variation) -> Outcome | None:
    """None where one of the three has no result."""
    base = variation.allocators[table3.BASE]
    speedups = []
    for name in table3.ALLOCATORS:
        ratios = campaign.ratios(workload, variation.allocators[name], base, variation.place, "cycles")
        if not ratios:
            return None
        speedups.append(mean_of(1 / ratio for ratio in ratios.values()))
    row = table3.Row(workload, table3.PAPER[workload], tuple(speedup.mean for speedup in speedups))
    return Outcome(row, max(speedup.spread for speedup in speedups))


def _cell(found: Outcome | None, unchanged: Outcome) -> str:
    """Speedups, and the order where it is another one than without the change."""
    if found is None:
        return "-"
    text = " ".join(f"{value:.2f}" for value in found.row.here)
    return text if found.order == unchanged.order else f"{text}: **{found.order}**"


def _removed(pair: str, outcomes: dict[str, Outcome | None]) -> tuple[str, str]:
    """The changes with which the pair is as in the paper, and those with which it is level."""
    as_in_paper, level = [], []
    for label, found in outcomes.items():
        if found is not None and pair not in found.row.flips:
            (level if found.row.level(pair) else as_in_paper).append(label)
    return ", ".join(as_in_paper) or "-", ", ".join(level) or "-"


def lines(campaign: Campaign, all_variations: list[Variation]) -> list[str]:
    unchanged, *changed = all_variations
    text = [
        "## With one thing changed",
        "",
        f"Speedups of {' and '.join(table3.ALLOCATORS)} over {table3.BASE} with {table3.THREADS} threads, as it is, "
        "and with one change each: a machine of `lab/campaign/sim/machines`, or an allocator in the place of its "
        f"relative. In bold the order, where the change makes it another one (= within {100 * table3.LEVEL:.0f} %).",
        "",
        *table_head(["", unchanged.label, "order", *(one.label for one in changed)]),
    ]
    pairs = []
    for workload in table3.PAPER:
        base = outcome(campaign, workload, unchanged)
        if base is None:
            continue
        outcomes = {one.label: outcome(campaign, workload, one) for one in changed}
        speedups = " ".join(f"{value:.2f}" for value in base.row.here)
        text.append(table_row([workload, speedups, base.order, *(_cell(found, base) for found in outcomes.values())]))
        widest = max(found.spread for found in (base, *outcomes.values()) if found)
        pairs += [
            table_row([workload, pair, *_removed(pair, outcomes), f"{100 * widest:.1f} %"]) for pair in base.row.flips
        ]
    return [
        *text,
        "",
        "Pairs that the paper and the simulation put in opposite orders, and what becomes of each: the changes that "
        "put them as in the paper, and those that make them level. Where there is neither, no change explains the "
        "pair. Spread: how far the seeds' speedups are apart, the widest of the workload.",
        "",
        *table_head(["", "pair", "as in the paper with", "level with", "spread"]),
        *pairs,
    ]
