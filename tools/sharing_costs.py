#!/usr/bin/env python3
"""What it costs threads to be in one process: a program's time with one thread, as two processes of one thread each,
and with two threads. Threads that share no block should take as long as the processes; what they take more, they
share in the allocator.

    tools/sharing_costs.py PROGRAM [ARGUMENT ...] -- NAME=LIBRARY [...]

PROGRAM takes --threads, as those of workloads/ do. Seconds of wall time, medians of eleven rounds in which the
libraries take turns, and the lowest and the highest.
"""

import os
import statistics
import subprocess
import sys
import time

ROUNDS = 11
WAYS = {"one thread": (1, 1), "two processes": (2, 1), "two threads": (1, 2)}  # processes, threads of each


def seconds(command, library, processes, threads):
    environment = {**os.environ, "LD_PRELOAD": os.path.abspath(library)}
    started = time.monotonic()
    running = [
        subprocess.Popen([*command, "--threads", str(threads)], env=environment, stdout=subprocess.DEVNULL)
        for _ in range(processes)
    ]
    if any([process.wait() for process in running]):
        sys.exit(f"{command[0]} failed under {library}")
    return time.monotonic() - started


def main():
    if "--" not in sys.argv[2:] or sys.argv[-1] == "--":
        sys.exit(__doc__)
    end = sys.argv.index("--")
    command = sys.argv[1:end]
    libraries = dict(argument.split("=", 1) for argument in sys.argv[end + 1 :] if "=" in argument)
    if len(libraries) < len(sys.argv) - end - 1:
        sys.exit(__doc__)
    taken = {(name, way): [] for name in libraries for way in WAYS}
    for _ in range(ROUNDS):
        for name, library in libraries.items():
            for way, (processes, threads) in WAYS.items():
                taken[name, way].append(seconds(command, library, processes, threads))
    for name in libraries:
        cells = (f"{statistics.median(t):.3f} ({min(t):.3f} to {max(t):.3f})" for t in (taken[name, w] for w in WAYS))
        print(f"{name:16}", *(f"{way} {cell}" for way, cell in zip(WAYS, cells)), sep="  ")


if __name__ == "__main__":
    main()
