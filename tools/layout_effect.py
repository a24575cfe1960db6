#!/usr/bin/env python3
"""How much it matters in the simulator where stack, heap, libraries and program lie: programs under two allocators,
with the same seeds once at the same addresses (--layout 0) and once at each seed's own.

    tools/layout_effect.py
    tools/layout_effect.py --seeds 1,2,3 --allocators annex,tcmalloc xmalloc:16:0.0005

A program is its name, its threads, and the scale of its work. Prints a Markdown table of how far the seeds are apart in
cycles from start to end, (largest - smallest) / mean, at the same addresses and at each seed's own; and of the ratio of
both allocators' cycles, in brackets how far it is apart. Results that are there already are taken (annex-lab sim
--cached).
"""

import argparse
import json
import statistics
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = [
    *("sh6bench:1:0.0002", "sh6bench:16:0.0002", "larson:1:0.0003", "larson:16:0.0003", "xmalloc:1:0.0005"),
    *("xmalloc:16:0.0005", "gap-bfs:16:0.01", "mstress:16:0.0005", "alloc-test:16:0.001", "msgpass:16:0.001"),
    *("espresso:1:0.01", "cfrac:1:0.002", "perl-hashes:1:0.008"),
]
WHERE = {"same addresses": ("--layout", "0"), "each seed its own": ()}


def cycles(program: str, allocator: str, seed: str, where: str) -> int:
    """From start to end."""
    name, threads, scale = program.split(":")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "results.json")
        command = [ROOT / ".venv/bin/python", "-m", "annex_lab.cli", "sim", "--cached", "--workload", name]
        command += ["--threads", threads, "--scale", scale, "--allocator", allocator, "--seed", seed, "--json", out]
        subprocess.run([*command, *WHERE[where]], check=True, capture_output=True, cwd=ROOT / "lab")
        return json.loads(out.read_text())["cycles"]


def apart(values: list[float]) -> float:
    return (max(values) - min(values)) / statistics.fmean(values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1,2,3,4,5")
    parser.add_argument("--allocators", default="annex,jemalloc", help="two of them")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("programs", nargs="*", metavar="NAME:THREADS:SCALE", default=PROGRAMS)
    given = parser.parse_args()
    seeds, (one, other) = given.seeds.split(","), given.allocators.split(",")
    asked = list(product(given.programs, (one, other), seeds, WHERE))
    with ThreadPoolExecutor(given.jobs) as pool:
        took = dict(zip(asked, pool.map(lambda run: cycles(*run), asked), strict=True))

    print(f"| program | threads | {one} | {other} | {one} / {other} |\n| --- | --- | --- | --- | --- |")
    for program in given.programs:
        taken = {
            (allocator, where): [took[program, allocator, seed, where] for seed in seeds]
            for allocator, where in product((one, other), WHERE)
        }
        name, threads, _ = program.split(":")
        cells = [name, threads]
        for allocator in (one, other):
            cells.append(", ".join(f"{100 * apart(taken[allocator, where]):.1f}" for where in WHERE) + " %")
        ratios = {
            where: [a / b for a, b in zip(taken[one, where], taken[other, where], strict=True)] for where in WHERE
        }
        cells.append(
            ", ".join(f"{statistics.geometric_mean(of):.3f} ({100 * apart(of):.1f} %)" for of in ratios.values())
        )
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
