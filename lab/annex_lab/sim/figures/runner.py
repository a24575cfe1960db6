"""Runs what is left, some at a time, each a process of its own: annex-lab sim. The very same run of before is taken
from the cache here, as starting a process takes ten times as long as looking there.

Why not Snakemake, as the campaigns: what makes a part stale is the simulator's digest in it, not the times of files;
figures share runs; and a second a job of its own is as long as many of these runs.
"""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from annex_lab.sim import asked
from annex_lab.sim.figures.runs import Parts, Spec


class Stopped(Exception):
    """By Ctrl-C. What was done is kept, what was not will be run the next time."""


class _Processes:
    """Those that are running, so that all can be stopped."""

    def __init__(self):
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen] = set()
        self._stopped = False

    def run(self, command: list[str], log: Path) -> int | None:
        """The exit status; None: stopped."""
        with self._lock:
            if self._stopped:
                return None
            with open(log, "w") as said:
                # A session of its own: Ctrl-C comes from us alone, and each ends its simulation by itself.
                process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
                )
            self._running.add(process)
        status = process.wait()
        with self._lock:
            self._running.discard(process)
            return None if self._stopped else status

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.send_signal(signal.SIGINT)


def _one(spec: Spec, parts: Parts, processes: _Processes) -> Spec:
    """A part is there whole or not at all."""
    file = parts.file(spec)
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished, log = file.with_suffix(".unfinished"), file.with_suffix(".log")
    if earlier := asked.of_an_earlier_run(spec.asked):
        asked.write(earlier, unfinished)
        unfinished.replace(file)
        return spec
    name, *arguments = spec.arguments  # which may end with the workload's own
    command = [sys.executable, "-m", "annex_lab.cli", name, "--json", str(unfinished), *arguments]
    status = processes.run(command, log)
    if status is None:
        unfinished.unlink(missing_ok=True)
        return spec
    if status != 0:  # it did not come as far as saying so itself
        why = f"annex-lab sim ended with status {status}: {log}"
        unfinished.write_text(json.dumps({"failure": {"why": why}}) + "\n")
    unfinished.replace(file)
    return spec


def run(left: list[Spec], parts: Parts, jobs: int, done: Callable[[Spec], None]) -> None:
    """Raises Stopped after Ctrl-C."""
    processes = _Processes()
    with ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(_one, spec, parts, processes) for spec in left]
        try:
            for future in as_completed(waiting):
                done(future.result())
        except BaseException as why:
            processes.stop()
            pool.shutdown(cancel_futures=True)
            if isinstance(why, KeyboardInterrupt):
                raise Stopped from None
            raise
