"""One simulated run of a figure: all that it depends on, the file that its result is in, the command that makes it."""

import contextlib
import json
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from annex_lab import allocators, paths
from annex_lab.sim import cache, machines, run
from annex_lab.sim.asked import Asked


@dataclass(frozen=True)
class Spec:
    workload: str
    allocator: str
    threads: int
    seed: int
    scale: float
    machine: str
    hardware: str = ""
    settings: tuple[str, ...] = ()  # as of --set
    options: tuple[str, ...] = ()  # of the workload: sizes other than its own, each one word, --vertices=4096

    @property
    def part(self) -> str:
        """The file of its result, below the folder of parts: two runs that differ in anything have two files."""
        where = "+".join([self.machine, *filter(None, [self.hardware]), *self.settings])
        what = f"{self.threads}t-seed{self.seed}-scale{self.scale:g}{''.join(self.options)}"
        return f"{self.workload}/{self.allocator}/{where}/{what}.json"

    @property
    def asked(self) -> Asked:
        return Asked(
            self.allocator,
            self.workload,
            machine=self.machine,
            hardware=self.hardware,
            settings=self.settings,
            threads=self.threads,
            seed=self.seed,
            scale=self.scale,
            options=self.options,
        )

    @property
    def arguments(self) -> list[str]:
        """Of annex-lab."""
        words = ["sim", "--part", "--cached", "--workload", self.workload, "--allocator", self.allocator]
        words += ["--threads", str(self.threads), "--seed", str(self.seed), "--scale", f"{self.scale:g}"]
        words += ["--machine", self.machine]
        words += ["--hardware", self.hardware] if self.hardware else []
        words += [word for setting in self.settings for word in ("--set", setting)]
        return [*words, "--", *self.options] if self.options else words

    @property
    def weight(self) -> float:
        """About how long it takes, for the time left: calls that queue for a core are the slowest to simulate."""
        dense = self.hardware and "support_core.service=none" not in self.settings
        return 1 + self.threads * (0.6 if dense else 0.2)


def library_written(allocator: str) -> float:
    """When its library was; 0 where it is the system's, or not there."""
    with contextlib.suppress(allocators.Unavailable, OSError):
        preload = allocators.find(allocator).preload
        return Path(preload).stat().st_mtime if preload else 0.0
    return 0.0


@dataclass(frozen=True)
class Found:
    part: dict | None  # of a run that came to its end
    why: str = ""  # there is none
    left: bool = False  # a call of the runner would run it


class Parts:
    """The results in a folder, as good as new ones: of this simulator, and newer than what they were made from."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.simulator = cache.digest(run.PLUGIN)[:12] if run.PLUGIN.exists() else ""
        sources = [*machines.PRESETS.rglob("*.toml"), *(paths.ROOT / "workloads").iterdir()]
        self._sources = max((file.stat().st_mtime for file in sources), default=0.0)
        self._libraries: dict[str, float] = {}

    def file(self, spec: Spec) -> Path:
        return self.folder / spec.part

    def _newest_source(self, allocator: str) -> float:
        """When the last of what a run reads was written: where that is after the run, annex-lab sim has to say
        whether the change matters, which its own cache by content does in a second."""
        if allocator not in self._libraries:
            self._libraries[allocator] = library_written(allocator)
        return max(self._libraries[allocator], self._sources)

    def cpu_seconds(self, specs: Iterable[Spec]) -> float | None:
        """About what they take: as the runs of the same workloads that are there did. None: one has no run yet."""
        total = 0.0
        for workload, count in Counter(spec.workload for spec in specs).items():
            taken = [found["host_cpu_s"] for found in self._made(workload)]
            if not taken:
                return None
            total += count * statistics.fmean(taken)
        return total

    def _made(self, workload: str) -> Iterator[dict]:
        for file in self.folder.glob(f"{workload}/*/*/*.json"):
            with contextlib.suppress(OSError, ValueError):
                found = json.loads(file.read_text())
                if found.get("simulator") == self.simulator and found.get("host_cpu_s"):
                    yield found

    def find(self, spec: Spec) -> Found:
        if spec.hardware and spec.hardware not in machines.hardware():
            return Found(None, f"hardware {spec.hardware} is not built yet")
        file = self.file(spec)
        try:
            part, written = json.loads(file.read_text()), file.stat().st_mtime
            if "failure" in part:  # of what may be there the next time: an allocator, a preset
                return Found(None, part["failure"]["why"], left=True)
            if part["simulator"] != self.simulator:
                return Found(None, "of another build of the simulator", left=True)
            if written < self._newest_source(spec.allocator):
                return Found(None, "older than the allocator, the workloads or the presets", left=True)
            if part["complete"] and part["exit_status"] == 0:
                return Found(part)
            why = part["ended"] if part["ended"] != "exit" else f"the program failed ({part['exit_status']})"
            return Found(None, why)
        except FileNotFoundError:
            return Found(None, "not run", left=True)
        except (OSError, ValueError, KeyError, TypeError):
            return Found(None, "its part cannot be read", left=True)
