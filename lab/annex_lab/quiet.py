"""Whether the machine was ours: the CPU that others used, from /proc/stat (all processes, and the host's steal)."""

import os
import resource
import time
from dataclasses import dataclass

TICK = 1 / os.sysconf("SC_CLK_TCK")


def busy_seconds(stat: str | None = None) -> float:
    """CPU seconds since boot that were not idle, over all CPUs, steal included."""
    if stat is None:
        with open("/proc/stat") as file:
            stat = file.readline()
    fields = [int(field) for field in stat.split()[1:9]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields
    return (user + nice + system + irq + softirq + steal) * TICK


def own_seconds() -> float:
    """CPU seconds of this process and of its children that ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


@dataclass
class Watch:
    """Measures what others used between start and stop."""

    busy: float = 0.0
    own: float = 0.0
    wall: float = 0.0

    def start(self) -> "Watch":
        self.busy, self.own, self.wall = busy_seconds(), own_seconds(), time.monotonic()
        return self

    def stop(self) -> float:
        """Seconds of CPU that others used meanwhile; ticks of 10 ms make it a little uncertain either way."""
        busy = busy_seconds() - self.busy
        own = own_seconds() - self.own
        self.wall = time.monotonic() - self.wall
        return max(0.0, busy - own)


def disturbed(foreign_s: float, wall_s: float) -> bool:
    """Others used more than 4 % of one CPU, with 30 ms of grace for the ticks' coarseness."""
    return foreign_s > 0.03 + 0.04 * wall_s


def wait_until_quiet(patience_s: float) -> bool:
    """Waits until the machine is idle for a tenth of a second; False where it was not within the patience."""
    deadline = time.monotonic() + patience_s
    while True:
        watch = Watch().start()
        time.sleep(0.1)
        if watch.stop() <= 0.02:
            return True
        if time.monotonic() > deadline:
            return False


class Patience:
    """How much waiting and repeating is worth while: less each time that it was in vain, all again after a success.

    On a machine that is never quiet, waiting for each sample would only make the comparison longer, not better.
    """

    def __init__(self, wait_s: float, retries: int):
        self._wait_s, self._retries = wait_s, retries
        self._in_vain = 0

    @property
    def wait_s(self) -> float:
        return self._wait_s / 2**self._in_vain

    @property
    def retries(self) -> int:
        return max(0, self._retries - self._in_vain // 2)

    def learn(self, disturbed: bool) -> None:
        """The last sample, with all its repeats, was disturbed, or at last one was not."""
        self._in_vain = min(self._in_vain + 1, 8) if disturbed else 0
