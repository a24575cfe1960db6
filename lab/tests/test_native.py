"""What the lab compiles, and when."""

import subprocess
import sys

import pytest

from annex_lab import native

SAYS_WHEN = "from annex_lab import native\nwith native.alone(): print('in')"


def test_one_process_at_a_time_compiles():
    with native.alone():
        other = subprocess.Popen([sys.executable, "-c", SAYS_WHEN], stdout=subprocess.PIPE, text=True)
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(timeout=1)
    assert other.communicate(timeout=30)[0] == "in\n"
