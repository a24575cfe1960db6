"""What a trial's ending means: a line for each rule.

| the process ended | in the wrong call or access | afterwards |
|---|---|---|
| by abort, a trap, or anything after a message on standard error | stopped | found |
| by a fault, without a message | stopped, by a fault | crashed |
| because it went in circles | crashed | crashed |
| by itself, and the attacker had nothing | | survived; found where there is a message |
| by itself, and the attacker had something | | exploited |
| by itself, and the call had said no | stopped | |
"""

import enum
import signal
from dataclasses import dataclass

from annex_lab.attacks.program import Ending


class Outcome(enum.IntEnum):
    """From the best to the worst for the program that is attacked."""

    STOPPED = 0  # before the misuse has had any effect
    FOUND = 1  # the allocator ended the program, later
    CRASHED = 2  # the program ended later, by an accident in the allocator
    SURVIVED = 3  # nobody noticed, and nothing came of it
    EXPLOITED = 4

    @property
    def word(self) -> str:
        return self.name.lower()


class Inconclusive(Exception):
    """The trial could not be made, or says nothing; the message says what happened."""


@dataclass(frozen=True)
class Verdict:
    outcome: Outcome
    how: str
    by_fault: bool = False  # stopped by the hardware, not by a check: a guard page, memory that is gone, or luck
    after_gain: bool = False  # found when the attacker had something already, which the program had not yet used


PHASES = {"call": "the wrong call", "access": "the wrong access", "after": "correct use afterwards"}
VERDICTS = {"survived": Outcome.SURVIVED, "exploited": Outcome.EXPLOITED, "refused": Outcome.STOPPED}
FAULTS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE)
CIRCLES = (signal.SIGXCPU, signal.SIGKILL)  # more CPU time than any trial needs; or more time


def judge(ending: Ending) -> Verdict:
    """Raises Inconclusive."""
    heads = [line.partition(":")[0] for line in ending.lines]
    last = heads[-1] if heads else ""
    phase = next((head for head in reversed(heads) if head in PHASES), None)
    if last == "broken" or (phase is None and last not in VERDICTS):
        raise Inconclusive(f"it ended before the misuse, with {ending.status}: {_said(ending)}")
    if last == "exploited" or (ending.status == 0 and last in VERDICTS):
        return _by_itself(ending, VERDICTS[last])
    if ending.status == 0:
        raise Inconclusive(f"it ended without a verdict: {_said(ending)}")
    return _ended(ending, phase or "after", "gain" in heads)


def _by_itself(ending: Ending, outcome: Outcome) -> Verdict:
    if outcome is Outcome.SURVIVED and ending.words:
        return Verdict(Outcome.FOUND, f"it went on after: {_said(ending)}")
    return Verdict(outcome, ending.lines[-1].partition(": ")[2])


def _ended(ending: Ending, phase: str, gained: bool) -> Verdict:
    code = -ending.status
    if code in CIRCLES:
        return Verdict(Outcome.CRASHED, f"it went in circles in {PHASES[phase]}", after_gain=gained)
    how = f"{signal.Signals(code).name if code > 0 else f'exit status {-code}'} in {PHASES[phase]}"
    if ending.words:
        how = f"{how}: {_said(ending)}"
    by_fault = code in FAULTS and not ending.words
    if phase != "after":
        return Verdict(Outcome.STOPPED, how, by_fault)
    return Verdict(Outcome.CRASHED if by_fault else Outcome.FOUND, how, after_gain=gained)


def _said(ending: Ending) -> str:
    """The first line of what was said on standard error, or else of what the trial wrote last."""
    said = ending.words.splitlines()[:1] or list(ending.lines[-1:])
    return said[0] if said else "nothing was said"
