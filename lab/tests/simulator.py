"""Whether programs can be simulated here: tests that do are left out, with the reason, where they can't; where
ANNEX_REQUIRE_ALL is set, they fail."""

import os

import pytest

from annex_lab.sim import run


def _why_not() -> run.CannotRun | None:
    try:
        run.qemu()
    except run.CannotRun as why:
        return why
    return None


WHY_NOT = _why_not()


def without_the_host(results: dict) -> dict:
    """What must be the same in every run of the same command."""
    return {name: value for name, value in results.items() if name not in run.OF_THE_HOST}


def left_out(why: run.CannotRun | None, require_all: bool) -> bool:
    return why is not None and not require_all


needed = pytest.mark.skipif(
    left_out(WHY_NOT, bool(os.environ.get("ANNEX_REQUIRE_ALL"))), reason=f"no simulation here: {WHY_NOT}"
)
