"""Progress: work is counted in seconds, and a log gets one line for each program."""

import io

import pytest
from rich.console import Console

from annex_lab import show


def test_long_programs_weigh_more():
    ledger = show.Ledger(["long", "short"], 2)
    ledger.expect("long", 10 - show.OVERHEAD_S)
    ledger.expect("short", 1 - show.OVERHEAD_S)
    assert ledger.ahead == pytest.approx(22)
    ledger.done("long", 2)
    assert (ledger.behind, ledger.ahead) == (pytest.approx(20), pytest.approx(2))


def test_a_log_gets_a_line_for_each_program():
    text = io.StringIO()
    with show.listener(Console(file=text), ["one", "two"], 3) as listener:
        listener.done("one")
        listener.done("one", 2)
        listener.say("two is odd")
    assert isinstance(listener, show.Lines)
    assert text.getvalue().splitlines()[0].startswith("one: done, about 0 min left")
    assert text.getvalue().splitlines()[1] == "two is odd"


def test_a_terminal_gets_a_bar():
    console = Console(file=io.StringIO(), force_terminal=True)
    with show.listener(console, ["one"], 2) as listener:
        listener.step("one", "glibc", "round 1")
        listener.expect("one", 3.0)
        listener.done("one", 2)
    assert isinstance(listener, show.Bar) and listener.progress.finished
