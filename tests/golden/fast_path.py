#!/usr/bin/env python3
"""Pins what the fast paths of malloc and free cost, by reading the machine code of the release library.

    fast_path.py LIBRARY GOLDEN                    compare with the golden file
    fast_path.py LIBRARY GOLDEN --trace PROGRAM    also: the path that PROGRAM really runs is the one counted here
    fast_path.py LIBRARY GOLDEN --update [--trace PROGRAM]

A path starts at a symbol and follows the code to a return: conditional jumps are not taken, except those whose number
(1 is the first) the golden file lists under `taken`. A path that calls or jumps out of its function is not a fast path.
With --update and --trace the list is taken from what PROGRAM ran.

Another compiler than the golden file's may order things otherwise: then loads, stores, atomics and calls must not
exceed the golden ones, and the instructions not by more than a quarter.

The file also holds how many bytes of thread-local storage the library has. tools/figures.py checks the documents by
these files.
"""

import argparse
import itertools
import os
import subprocess
import sys
from pathlib import Path

from machine_code import Library, count

PATHS = {
    "malloc": "malloc of a small block, the thread's list is not empty",
    "free": "free of a small block by the thread that owns it",
    "_Znwm": "operator new of a small block",
    "_ZdlPvm": "sized operator delete of a small block",
}
COUNTS = ("instructions", "loads", "stores", "conditional", "jumps", "atomics", "calls")
SLACK = 0.25


class Problem(Exception):
    pass


def follow(library, symbol, taken):
    """The instructions from the symbol to a return."""
    function = library.function(symbol)
    at = function.start
    path, conditional = [], 0
    while True:
        if at not in function:
            raise Problem(f"{symbol}: the path leaves the function at {path[-1]}")
        instruction = library.at(at)
        path.append(instruction)
        if len(path) > 1000:
            raise Problem(f"{symbol}: the path does not end")
        if instruction.is_return:
            return path
        if instruction.is_call:
            raise Problem(f"{symbol}: the path calls another function at {instruction}")
        at = instruction.next
        if instruction.is_conditional:
            conditional += 1
            if conditional in taken:
                at = instruction.target
        elif instruction.is_jump:
            if instruction.target is None:
                raise Problem(f"{symbol}: an indirect jump at {instruction}")
            at = instruction.target


def run_trace(program):
    """What the program printed: for each symbol the addresses that one call ran, or None where tracing is refused."""
    result = subprocess.run([program], capture_output=True, text=True)
    if result.returncode == 77:
        return None
    if result.returncode != 0:
        raise Problem(f"{program} failed:\n{result.stdout}{result.stderr}")
    trace = {}
    for line in result.stdout.splitlines():
        symbol, *addresses = line.split()
        trace[symbol] = [int(address, 16) for address in addresses]
    return trace


def taken_in(library, addresses):
    """The numbers of the conditional jumps that an executed path took."""
    taken, number = [], 0
    for here, following in itertools.pairwise(addresses):
        instruction = library.at(here)
        if instruction.is_conditional:
            number += 1
            if following != instruction.next:
                taken.append(number)
    return taken


def read_golden(path):
    """The golden file: {'compiler': ..., 'paths': {symbol: {'taken': [...], 'loads': ...}}}."""
    golden = {"compiler": None, "thread-local bytes": None, "paths": {}}
    current = None
    for line in path.read_text().splitlines() if path.exists() else []:
        line = line.split("#")[0].strip()
        if not line:
            continue
        key, value = (part.strip() for part in line.split(":", 1))
        if key == "compiler":
            golden["compiler"] = value
        elif key == "thread-local bytes":
            golden[key] = int(value)
        elif key == "path":
            current = golden["paths"].setdefault(value, {"taken": []})
        elif key == "taken":
            current["taken"] = [int(number) for number in value.split()]
        elif key in COUNTS:
            current[key] = int(value)
        else:
            raise Problem(f"{path}: what is '{key}'?")
    return golden


def write_golden(path, library, found):
    lines = [
        f"# What the fast paths of {library.path.name} cost, in instructions. Read and written by fast_path.py, which",
        "# says how; after a change that is meant to change them: build, then",
        "#   cmake --build build/release --target golden-update",
        "# `taken` lists the conditional jumps that the path takes. The code is for the reader and is not compared.",
        f"compiler: {library.compiler}",
        f"thread-local bytes: {library.thread_local_bytes}",
    ]
    for symbol, (taken, instructions) in found.items():
        lines += ["", f"path: {symbol}  # {PATHS[symbol]}", "taken: " + " ".join(map(str, taken))]
        lines += [f"{name}: {value}" for name, value in count(instructions).items()]
        lines += [f"#   {instruction.text:<40}{instruction.note}".rstrip() for instruction in instructions]
    path.write_text("\n".join(lines) + "\n")


def compare(symbol, expected, actual, same_compiler):
    wrong = []
    for name in COUNTS:
        limit = expected[name]
        if same_compiler:
            bad = actual[name] != limit
        elif name == "instructions":
            bad = actual[name] > limit * (1 + SLACK)
        else:
            bad = name not in ("conditional", "jumps") and actual[name] > limit
        if bad:
            wrong.append(f"{symbol}: {name} {actual[name]}, the golden file says {limit}")
    return wrong


def check(library, golden_path, golden, trace):
    if set(golden["paths"]) != set(PATHS):
        raise Problem(f"{golden_path} has the paths {sorted(golden['paths'])}, not {sorted(PATHS)}: use --update")
    same_compiler = golden["compiler"] == library.compiler
    if not same_compiler:
        print(f"built by {library.compiler}, the golden file is of {golden['compiler']}: checking upper bounds only")
    wrong = []
    if library.thread_local_bytes != golden["thread-local bytes"]:
        expected = golden["thread-local bytes"]
        wrong.append(f"{library.thread_local_bytes} bytes of thread-local storage, the golden file says {expected}")
    for symbol, expected in golden["paths"].items():
        taken = expected["taken"]
        if trace and not same_compiler:
            taken = taken_in(library, trace[symbol])
        path = follow(library, symbol, taken)
        actual = count(path)
        if trace and [i.address for i in path] != trace[symbol]:
            wrong.append(f"{symbol}: the path counted is not the path that runs")
        bad = compare(symbol, expected, actual, same_compiler)
        if bad:
            wrong += bad + ["  " + str(instruction) for instruction in path]
        print(f"{symbol}: " + ", ".join(f"{actual[name]} {name}" for name in COUNTS))
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path)
    parser.add_argument("golden", type=Path)
    parser.add_argument("--trace", metavar="PROGRAM")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    try:
        library = Library(options.library)
        golden = read_golden(options.golden)
        trace = run_trace(options.trace) if options.trace else None
        if options.trace and trace is None:
            if os.environ.get("ANNEX_REQUIRE_ALL"):
                raise Problem("tracing is not permitted here, so the path can't be compared with what runs")
            print("tracing is not permitted here: the path is not compared with what runs")
        if options.update:
            found = {}
            for symbol in PATHS:
                old = golden["paths"].get(symbol, {"taken": []})["taken"]
                taken = taken_in(library, trace[symbol]) if trace else old
                found[symbol] = (taken, follow(library, symbol, taken))
            write_golden(options.golden, library, found)
            return 0
        wrong = check(library, options.golden, golden, trace)
    except Problem as problem:
        wrong = [str(problem)]
    for line in wrong:
        print(line)
    if wrong:
        print(
            f"If this is meant: update {options.golden.name}, then the documents (tools/figures.py --write), and say in"
        )
        print("the commit what the change buys.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
