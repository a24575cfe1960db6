"""Counts of instructions, reads and misses, against valgrind's cachegrind."""

import re
import subprocess
from pathlib import Path

from annex_lab import count, sample
from annex_lab.sim import run
from annex_lab.sim.validation.section import Section
from annex_lab.sim.validation.validator import PLAIN_STRINGS, Validator

CACHES = (("I1", "l1i"), ("D1", "l1d"), ("LL", "llc"))
# How much of a workload, and how large its structures are.
PROGRAMS = (
    ("espresso", 0.02, ()),
    ("strings", 0.005, ()),
    ("hashmap", 1, ("--entries=30000",)),
    ("bintree", 0.01, ()),
    ("gauss", 0.01, ()),
)


def _cachegrind(who: run.Guest, machine: dict, folder: Path) -> dict[str, int]:
    out = folder / "cachegrind.out"
    caches = [f"--{ours}={machine[name]['bytes']},{machine[name]['ways']},64" for ours, name in CACHES]
    argv = [
        count.valgrind(),
        "--tool=cachegrind",
        "--cache-sim=yes",
        *caches,
        f"--cachegrind-out-file={out}",
        *who.argv,
    ]
    env = sample.environment({**who.env, **PLAIN_STRINGS})
    subprocess.run(argv, check=True, env=env, cwd=who.cwd, capture_output=True)
    text = out.read_text()
    events = re.search(r"^events: (.*)$", text, re.MULTILINE)[1].split()
    sums = re.search(r"^summary: (.*)$", text, re.MULTILINE)[1].split()
    return dict(zip(events, map(int, sums), strict=True))


def _sum(counts: dict, kind: str) -> int:
    return sum(origin[kind] for origin in counts.values())


def of_counts(validator: Validator) -> Section:
    section = Section(
        "Counts, against cachegrind",
        "The same program and library (glibc's allocator), simulated on speedmalloc-1 and counted by cachegrind with "
        "caches of the same shape; as cachegrind knows of no kernel, new pages are not cleared through them. "
        "Instructions and reads: bound 1 %; misses of the first data cache: 3 % or 2,000. "
        "Cachegrind counts what reads and writes the same place as a read, so reads are compared.",
        [
            "program",
            *(cell for what in ("instructions", "reads", "L1D misses") for cell in (what, "cachegrind", "")),
            "",
        ],
    )
    machine = validator.machine("counted", 'base = "speedmalloc-1"\n[pages]\nclearing = "none"\n')
    for name, scale, sizes in PROGRAMS:
        who = validator.workload(name, scale, sizes=sizes)
        ours = validator.simulate(who, machine, env=PLAIN_STRINGS)
        theirs = _cachegrind(who, ours["machine"], validator.scratch)
        l1d = ours["memory"]["cores"][0]["l1d"]
        reads = sum(ours["all"][origin]["loads"] for origin in ("program", "allocator"))
        misses = _sum(l1d["misses"], "load") + _sum(l1d["misses"], "store")
        row, beyond = [name], []
        for what, found, expected, bound, slack in (
            ("instructions", ours["instructions"], theirs["Ir"], 0.01, 0),
            ("reads", reads, theirs["Dr"], 0.01, 0),
            ("L1D misses", misses, theirs["D1mr"] + theirs["D1mw"], 0.03, 2000),
        ):
            error = found / expected - 1
            row += [f"{found:,}", f"{expected:,}", f"{100 * error:+.2f} %"]
            if abs(error) > bound and abs(found - expected) > slack:
                beyond.append(f"{what} {100 * error:+.1f} %")
        section.rows.append([*row, section.verdict(not beyond, f"{name}: {', '.join(beyond)}")])
    return section
