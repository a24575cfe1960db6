#!/usr/bin/env python3
"""Has Spin try every order of a model's steps, or find a fault that was put into it.

    check.py --work DIRECTORY [--model FILE] [--cc COMPILER] [--unreached N] [--finds FAULT]
             [PARAMETER=VALUE or BUG_NAME ...]

Without --finds nothing may be wrong, the search must be complete, and all of the model's statements but N must have
been reached. With it, what is found wrong first must be FAULT: a property's name, or "invalid end state" for a
deadlock. Where Spin is not installed the test is skipped (fails where ANNEX_REQUIRE_ALL is set).
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

MODELS = Path(__file__).resolve().parent
SKIPPED = 77
MEGABYTES = 2048
DEPTH = 1_000_000
# -DSAFETY: no search for cycles. States are kept whole, not as hashes; -DCOLLAPSE would keep them in half the memory,
# and take a third longer.
FLAGS = ["-w", "-DSAFETY", f"-DMEMLIM={MEGABYTES}"]
# The table of states is looked into at random: in pages of 2 MiB that takes 0.86 of the time.
HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
FEWEST_STATES = 100_000  # of a search that has something to say
LAST_STEPS = 80


def run(command, work):
    """What the command prints; ends the test where it fails."""
    environment = os.environ | HUGE_PAGES
    done = subprocess.run(
        command, cwd=work, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def number(pattern, output):
    found = re.search(pattern, output, re.MULTILINE)
    if found is None:
        sys.exit(f"{output}\nthe search did not come to its end")
    return float(found[1])


def steps(model, definitions, work):
    """The last steps of the order that Spin has found wrong: of each step, its first statement."""
    trail = run(["spin", "-p", *definitions, "-k", f"{model.name}.trail", model], work)
    first = {}
    for line in trail.splitlines():
        if step := re.match(r"\s*(\d+):", line):
            first.setdefault(step[1], line.replace(f"{MODELS}/", ""))
    return "\n".join(list(first.values())[-LAST_STEPS:])


def expect_fault(fault, wrong, output):
    if wrong is None:
        sys.exit(f"{output}\nSpin finds nothing wrong")
    if wrong[1] != fault:
        sys.exit(f"Spin finds {wrong[1]}, not {fault}")
    print(f"found as it should be, after {wrong[2]} steps: {wrong[1]}")


def expect_all_tried(unreached, output):
    if number(r"errors: (\d+)$", output) != 0 or re.search("too small|not completed", output):
        sys.exit(f"{output}\nnot every order was tried")
    states = int(number(r"^\s*(\d+) states, stored", output))
    if states < FEWEST_STATES:
        sys.exit(f"{states} states only: this tries next to nothing")
    # Of which file a line is, Spin does not know.
    for statement in re.findall(r'^\t\S+:(\d+, state \d+, ".*")$', output, re.MULTILINE):
        print(f"unreached: line {statement}")
    found = sum(int(count) for count in re.findall(r"^\t\((\d+) of \d+ states\)$", output, re.MULTILINE))
    if found != unreached:
        sys.exit(f"{found} statements are never reached, not {unreached}")
    seconds = number(r"^pan: elapsed time (\S+) seconds", output)
    megabytes = number(r"^\s*(\S+)\s+total actual memory usage", output)
    print(f"nothing is wrong in {states} states: {seconds} s, {megabytes:.0f} MB")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=Path, required=True, help="directory for what is made")
    parser.add_argument("--model", default="queues.pml", help="a file beside this one")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--unreached", type=int, default=0)
    parser.add_argument("--finds")
    parser.add_argument("settings", nargs="*")
    arguments = parser.parse_args()

    if shutil.which("spin") is None:
        print("not installed: spin (tools/install-deps tools/apt-test.txt)")
        sys.exit(1 if os.environ.get("ANNEX_REQUIRE_ALL") else SKIPPED)
    arguments.work.mkdir(parents=True, exist_ok=True)
    model = MODELS / arguments.model
    definitions = [f"-D{setting}" for setting in arguments.settings]
    run(["spin", *definitions, "-a", model], arguments.work)
    # A fault is found within a second, however slow the search.
    optimized = "-O2" if arguments.finds is None else "-O0"
    run([arguments.cc, *FLAGS, optimized, "-o", "pan", "pan.c"], arguments.work)
    output = run(["./pan", f"-m{DEPTH}"], arguments.work)
    wrong = re.search(r"^pan:1: (?:assertion violated )?(.*) \(at depth (\d+)\)$", output, re.MULTILINE)

    if arguments.finds is not None:
        expect_fault(arguments.finds, wrong, output)
    elif wrong is not None:
        sys.exit(f"{steps(model, definitions, arguments.work)}\n\nWRONG after these steps: {wrong[1]}")
    else:
        expect_all_tried(arguments.unreached, output)


main()
