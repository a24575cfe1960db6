"""Whether programs can be simulated here: tests that do are left out, with the reason, where they can't."""

import pytest

from annex_lab.sim import run


def _why_not() -> str | None:
    try:
        run.qemu()
    except run.CannotRun as why:
        return str(why)
    return None


needed = pytest.mark.skipif(bool(_why_not()), reason=str(_why_not()))
