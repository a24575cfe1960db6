"""The results document: what a run measured, as JSON. Its format is published in schema/results.schema.json.

bench makes it, merge joins several, and everything that people look at (tables, Markdown, the HTML page, comparisons)
is made from it alone; so a report can be made again, or differently, long after the run.
"""

import dataclasses
import json
import re
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

from annex_lab import allocators as known
from annex_lab import machine, stats
from annex_lab.allocators import Allocator
from annex_lab.outcome import Outcome
from annex_lab.programs.model import Context, Program

FORMAT = 2
SCHEMA = Path(__file__).parent / "schema" / "results.schema.json"


class Unusable(Exception):
    """Not a results document, or not one that fits the others; the message says which and why."""


def of_run(
    outcome: Outcome,
    programs: list[Program],
    allocators: list[Allocator],
    absent: list[dict[str, str]],
    context: Context,
    options: dict,
) -> dict:
    document = {
        "format": FORMAT,
        "date": datetime.now(timezone.utc).date().isoformat(),
        "machine": machine.describe(),
        "options": options,
        "allocators": {
            allocator.name: {
                "version": allocator.version,
                "flags": allocator.flags,
                "env": allocator.env,
                "page_policy": known.page_policy(allocator),
            }
            for allocator in allocators
        },
        "programs": _programs(outcome, programs, context),
        "results": [_result(result) for result in outcome.results],
        "failures": outcome.failures,
        "skipped": outcome.skipped,
        "absent": absent,
        "interrupted": outcome.interrupted,
    }
    for optional in ("counts", "latencies"):
        if found := getattr(outcome, optional):
            document[optional] = found
    return summarized(document)


def so_far(outcome: Outcome, programs: list[Program], allocators: list[Allocator], context: Context) -> dict:
    """Of a run that goes on: what its geometric means are made of, and these."""
    return summarized(
        {
            "allocators": {allocator.name: {} for allocator in allocators},
            "programs": _programs(outcome, programs, context),
            "results": [_result(result) for result in outcome.results],
        }
    )


def _programs(outcome: Outcome, programs: list[Program], context: Context) -> dict[str, dict]:
    return {
        program.name: {
            "suite": program.suite,
            "kind": program.kind,
            "what": program.what,
            "command": program.command(context),
            "glibc_peak_rss_kib": outcome.glibc_peak_kib.get(program.name),
        }
        for program in programs
    }


def _result(result) -> dict:
    sample = result.sample
    return {
        "workload": result.workload,
        "allocator": result.allocator,
        "threads": result.threads,
        "round": result.round,
        "wall_s": sample.wall_s,
        "user_s": sample.user_s,
        "sys_s": sample.sys_s,
        "peak_rss_kib": sample.peak_rss_kib,
        "mean_rss_kib": sample.mean_rss_kib,
        "minor_faults": sample.minor_faults,
        "voluntary_switches": sample.voluntary_switches,
        "involuntary_switches": sample.involuntary_switches,
        "score": sample.pace,
        "support_cpu_s": sample.support_cpu_s,
        "foreign_cpu_s": round(result.foreign_s, 3),
        "disturbed": result.disturbed,
        "tries": result.tries,
    }


def summarized(document: dict) -> dict:
    """The same with its groups and geometric means, made from its samples."""
    groups = stats.groups(document["programs"])
    geomeans = stats.geomeans(stats.Samples(document["results"]), groups)
    return {**document, "groups": groups, "geomeans": [dataclasses.asdict(found) for found in geomeans]}


WRITTEN = ("--json", "--markdown", "--report")
OF_ONE_RUN = ("until", "at_most_rounds")  # options that say nothing of several runs together


def without_paths(arguments: list[str]) -> str:
    """The command that made a report, less what is only this machine's: the files written, the folders of libraries."""
    kept, skip = [], False
    for argument in arguments:
        if skip:
            skip = False
        elif argument in WRITTEN:
            skip = True
        elif argument != "--resume" and not argument.startswith(tuple(f"{option}=" for option in WRITTEN)):
            kept.append(re.sub(r"/[^,\s]*/", "", argument))
    return " ".join(["annex-lab", *kept])


def read(path: Path, command: str, version: int, is_one: Callable[[dict], bool]) -> dict:
    """What such a command of annex-lab has written, in that version of its format; raises Unusable."""
    try:
        content = json.loads(path.read_text())
    except OSError as why:
        raise Unusable(f"{path}: {why.strerror}") from None
    except ValueError:
        raise Unusable(f"{path}: not JSON") from None
    if not isinstance(content, dict) or content.get("format") != version or not is_one(content):
        raise Unusable(f"{path}: not a result file of annex-lab {command} --json (format {version})")
    return content


def load(path: Path) -> dict:
    """A document from a file; raises Unusable."""
    return read(path, "bench", FORMAT, lambda content: "results" in content)


def save(document: dict, path: Path) -> None:
    path.write_text(json.dumps(document, indent=1) + "\n")


def merged(documents: dict[str, dict], made_by: str = "") -> dict:
    """One document of several runs (by name, for messages) on equal machines with the same allocators.

    Each program belongs to one of the runs alone, since only what took turns in one run can be compared.
    """
    names = list(documents)
    first = documents[names[0]]
    for name in names[1:]:
        for what in ("machine", "allocators"):
            if documents[name][what] != first[what]:
                raise Unusable(f"{name}: not the same {what} as in {names[0]}; they cannot be told in one table")
    owner: dict[str, str] = {}
    for name, document in documents.items():
        for program in document["programs"]:
            if program in owner:
                raise Unusable(f"{program} is in {owner[program]} and in {name}: each program in one run alone")
            owner[program] = name
    options = {name: value for name, value in first["options"].items() if name not in OF_ONE_RUN}
    together = {
        **first,
        "options": {**options, "command": made_by or " ; ".join(_commands(documents))},
        "date": max(document["date"] for document in documents.values()),
        "programs": {name: what for document in documents.values() for name, what in document["programs"].items()},
        "interrupted": any(document["interrupted"] for document in documents.values()),
        "absent": _unique(document["absent"] for document in documents.values()),
    }
    for key in ("results", "failures", "skipped", "counts", "latencies"):
        rows = [row for document in documents.values() for row in document.get(key, [])]
        if rows or key in first:
            together[key] = rows
    return summarized(together)


def _commands(documents: dict[str, dict]) -> list[str]:
    return list(dict.fromkeys(document["options"]["command"] for document in documents.values()))


def _unique(lists) -> list[dict]:
    found: list[dict] = []
    for rows in lists:
        found += [row for row in rows if row not in found]
    return found
