"""What a run has measured so far, on disk as it goes: an interrupted run continues where it stopped.

One file a plan, named by what the plan measures (programs, allocators and their builds, rounds, scale, threads, CPUs),
so a run never continues another's. Its lines are JSON: first the plan, then one line for each thing that was learnt. A
line that was cut off by a crash is dropped with what follows it.
"""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

from annex_lab.outcome import Outcome, Result
from annex_lab.sample import Sample


class Journal:
    def __init__(self, folder: Path, plan: dict):
        self.plan = plan
        digest = hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()[:16]
        self.path = folder / f"run-{digest}.jsonl"

    def exists(self) -> bool:
        return self.path.exists()

    def start(self) -> None:
        """Forgets an earlier run of this plan."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps({"plan": self.plan}) + "\n")

    def note(self, what: str, content: dict) -> None:
        """`what` is a list or table of the outcome: results, failures, skipped, peaks, counts, latencies."""
        with self.path.open("a") as file:
            file.write(json.dumps({what: content}) + "\n")

    def outcome(self) -> Outcome:
        """All that was noted; the file is cut back to what could be read."""
        found, good = Outcome(), []
        for line in self.path.read_text().splitlines():
            try:
                ((what, content),) = json.loads(line).items()
            except ValueError:
                break
            good.append(line)
            if what == "results":
                found.results.append(Result(**{**content, "sample": Sample(**content["sample"])}))
            elif what == "peaks":
                found.glibc_peak_kib.update(content)
            elif what != "plan":
                getattr(found, what).append(content)
        self.path.write_text("".join(line + "\n" for line in good))
        return found

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def result_line(result: Result) -> dict:
    return {**asdict(result), "sample": {**asdict(result.sample), "output": ""}}
