"""Whether programs can be simulated here: tests that do are left out, with the reason, where they can't; where
ANNEX_REQUIRE_ALL is set, they fail."""

import os

import pytest

from annex_lab.sim import run


def _why_not() -> str | None:
    try:
        run.qemu()
    except run.CannotRun as why:
        return str(why)
    return None


def without_the_host(results: dict) -> dict:
    """What must be the same in every run of the same command."""
    return {name: value for name, value in results.items() if name not in run.OF_THE_HOST}


needed = pytest.mark.skipif(
    bool(_why_not()) and not os.environ.get("ANNEX_REQUIRE_ALL"), reason=f"no simulation here: {_why_not()}"
)
