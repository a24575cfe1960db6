"""A measurement on this machine that a figure is made of: one annex-lab bench, whose allocators take turns.

Unlike a simulated run it wants the machine for itself: it has to be done when nothing else is under way, and all that
is compared has to be in the same one.
"""

import hashlib
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from annex_lab import document, stats
from annex_lab.sim.figures.runner import Stopped
from annex_lab.sim.figures.runs import Found, library_written

SAMPLES, DISTURBED, CPUS = "samples", "disturbed", "cpus"  # what a figure may ask of it
INTERRUPTED = 130


class Failed(Exception):
    """There is nothing that was measured; the message says where it says why."""


@dataclass(frozen=True)
class Measurement:
    workloads: tuple[str, ...]
    allocators: tuple[str, ...]
    rounds: int
    scale: float
    threads: tuple[int, ...] = (1,)  # of workloads that may have several: each once with each

    @property
    def programs(self) -> list[str]:
        """The names of the samples. Only for workloads of several threads, where there is more than one number."""
        if len(self.threads) == 1:
            return list(self.workloads)
        return [f"{workload}/{threads}" for workload in self.workloads for threads in self.threads]

    @property
    def part(self) -> str:
        """The file of its result, below the folder of parts."""
        words = [*self.workloads, *self.allocators, *map(str, self.threads)]
        what = hashlib.sha256(" ".join(words).encode()).hexdigest()[:8]
        return f"host/{what}-{self.rounds}rounds-scale{self.scale:g}.json"

    @property
    def arguments(self) -> list[str]:
        """Of annex-lab."""
        words = ["bench", "--resume", "--threads", ",".join(map(str, self.threads))]
        words += ["--workloads", ",".join(self.workloads)]
        words += ["--allocators", ",".join(self.allocators), "--rounds", str(self.rounds)]
        return [*words, "--scale", f"{self.scale:g}"]

    def find(self, parts: Path) -> Found:
        """Its result, unless an allocator is newer."""
        file = parts / self.part
        if not file.exists():
            return Found(None, "not measured", left=True)
        try:
            found = document.load(file)
        except document.Unusable as why:
            return Found(None, str(why), left=True)
        if file.stat().st_mtime < max(map(library_written, self.allocators)):
            return Found(None, "measured before an allocator was built", left=True)
        return Found(found)

    def measure(self, parts: Path) -> None:
        """Does it, with its own progress on the terminal. Raises Stopped after Ctrl-C, Failed."""
        file = parts / self.part
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished, log = file.with_suffix(".unfinished"), file.with_suffix(".log")
        command = [sys.executable, "-m", "annex_lab.cli", *self.arguments, "--json", str(unfinished)]
        with open(log, "w") as said:
            # A session of its own: Ctrl-C comes from us alone, and bench keeps what it has measured.
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, start_new_session=True)
            try:
                status = process.wait()
            except KeyboardInterrupt:
                process.send_signal(signal.SIGINT)
                process.wait()
                status = INTERRUPTED
        if status == INTERRUPTED:
            unfinished.unlink(missing_ok=True)
            raise Stopped
        if not unfinished.exists():
            raise Failed(f"annex-lab bench ended with status {status}: {log}")
        unfinished.replace(file)


def results(part: dict) -> dict:
    """What a figure may ask of a result."""
    rows = part["results"]
    disturbed = (sum(row["disturbed"] for row in rows), len(rows))
    return {SAMPLES: stats.Samples(rows), DISTURBED: disturbed, CPUS: part["machine"]["cpus"]}
