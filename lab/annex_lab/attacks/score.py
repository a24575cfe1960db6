"""The scorecard: every attack under every allocator, many trials of each, counted. Also as a document (JSON)."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from annex_lab import machine
from annex_lab.allocators import Allocator
from annex_lab.attacks import program as attack_program
from annex_lab.attacks.program import CONTROL, ODDS, Attack, Ending
from annex_lab.attacks.verdict import Inconclusive, Outcome, Verdict, judge

FORMAT = 1
MOST_EXAMPLES = 3  # of how trials ended, kept for the document


@dataclass
class Cell:
    """The trials of one attack under one allocator."""

    counts: Counter[Outcome] = field(default_factory=Counter)
    by_fault: int = 0  # of those stopped
    after_gain: int = 0  # of those found and crashed
    examples: dict[Outcome, list[str]] = field(default_factory=dict)
    inconclusive: list[str] = field(default_factory=list)

    def add(self, verdict: Verdict) -> None:
        self.counts[verdict.outcome] += 1
        self.by_fault += verdict.by_fault
        self.after_gain += verdict.after_gain
        kept = self.examples.setdefault(verdict.outcome, [])
        if verdict.how not in kept and len(kept) < MOST_EXAMPLES:
            kept.append(verdict.how)

    @property
    def trials(self) -> int:
        return self.counts.total()

    @property
    def worst(self) -> Outcome:
        return max(outcome for outcome, count in self.counts.items() if count)

    def share(self, outcome: Outcome) -> float:
        return self.counts[outcome] / self.trials


@dataclass
class Scorecard:
    attacks: list[Attack]
    allocators: list[str]
    cells: dict[tuple[str, str], Cell] = field(default_factory=dict)  # by attack, allocator
    absent: list[dict[str, str]] = field(default_factory=list)

    def cell(self, attack: str, allocator: str) -> Cell | None:
        """None where no trial of it has come to an end."""
        found = self.cells.get((attack, allocator))
        return found if found and found.trials else None

    @property
    def kinds(self) -> list[str]:
        return list(dict.fromkeys(attack.kind for attack in self.attacks))

    def of_kind(self, *kinds: str) -> list[Attack]:
        return [attack for attack in self.attacks if attack.kind in kinds]

    @property
    def mistakes(self) -> list[Attack]:
        """The attacks that do something wrong, which an allocator could notice."""
        return [attack for attack in self.attacks if attack.kind not in (CONTROL, *ODDS)]

    def worst(self, attacks: Iterable[Attack], allocator: str) -> Counter[Outcome]:
        """How many of the attacks have each outcome as the worst of their trials."""
        found = (self.cell(attack.name, allocator) for attack in attacks)
        return Counter(cell.worst for cell in found if cell)

    def shares(self, attacks: Iterable[Attack], allocator: str) -> dict[Outcome, float]:
        """Of all trials, each attack counting the same."""
        found = [cell for attack in attacks if (cell := self.cell(attack.name, allocator))]
        return {outcome: sum(cell.share(outcome) for cell in found) / max(len(found), 1) for outcome in Outcome}

    @property
    def complaints(self) -> list[str]:
        """What makes the scorecard itself doubtful: a control that did not come to its end, trials that say nothing."""
        failed = []
        for (attack, allocator), cell in self.cells.items():
            failed += [f"{attack}, {allocator}: {why}" for why in dict.fromkeys(cell.inconclusive)]
        for attack in self.of_kind(CONTROL):
            for allocator in self.allocators:
                cell = self.cell(attack.name, allocator)
                others = [outcome.word for outcome in (cell.counts if cell else ()) if outcome is not Outcome.SURVIVED]
                if others:
                    failed.append(f"{attack.name}, {allocator}: does nothing wrong and was {', '.join(others)}")
        return failed

    def as_document(self, allocators: list[Allocator], options: dict) -> dict:
        return {
            "format": FORMAT,
            "date": datetime.now(timezone.utc).date().isoformat(),
            "machine": machine.describe(),
            "options": options,
            "allocators": {
                one.name: {"version": one.version, "flags": one.flags, "env": one.env} for one in allocators
            },
            "absent": self.absent,
            "attacks": [vars(attack) for attack in self.attacks],
            "cells": [
                {
                    "attack": attack,
                    "allocator": allocator,
                    **{outcome.word: cell.counts[outcome] for outcome in Outcome},
                    "stopped_by_fault": cell.by_fault,
                    "found_after_gain": cell.after_gain,
                    "how": {outcome.word: kept for outcome, kept in cell.examples.items()},
                    "inconclusive": cell.inconclusive,
                }
                for (attack, allocator), cell in self.cells.items()
            ],
        }


Run = Callable[[Path, Allocator, Attack], Ending]


def fill(
    scorecard: Scorecard,
    program: Path,
    allocators: list[Allocator],
    trials: int,
    run: Run = attack_program.trial,
) -> Iterator[str]:
    """Makes the trials, and says before each attack under each allocator which comes next."""
    for attack in scorecard.attacks:
        for allocator in allocators:
            yield f"{attack.name} {allocator.name}"
            cell = scorecard.cells.setdefault((attack.name, allocator.name), Cell())
            for _ in range(trials):
                try:
                    cell.add(judge(run(program, allocator, attack)))
                except Inconclusive as why:
                    cell.inconclusive.append(str(why))
