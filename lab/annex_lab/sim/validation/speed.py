"""How fast the simulator itself is, in bounds and against another build of it."""

import shutil
import statistics
import subprocess
from pathlib import Path

from annex_lab import paths
from annex_lab.sim import machines, run
from annex_lab.sim.validation.section import Section
from annex_lab.sim.validation.validator import Validator

ALLOCATOR = "annex"
ROUNDS = 5
MOST_GIB = 2
# Million instructions a second, at least, by threads.
LEAST = {1: 40, 16: 25}
SHORT = (("espresso", 0.055, 1, ()), ("sh6bench", 0.004, 16, ()), ("mstress", 1, 16, ("--items=800",)))
ESPRESSO = 8.2  # million instructions a thousandth of its work


def of_speed(validator: Validator, billions: float) -> Section:
    section = Section(
        "Speed and memory",
        f"Of the simulator itself, on one core of this machine. Bounds: {LEAST[1]} million instructions a second with "
        f"a thread, {LEAST[16]} with 16, on the median of {ROUNDS} runs; less than {MOST_GIB} GiB; cost grows with "
        "instructions and nothing else. The fastest run, which the bound was on before, stays beside it with its "
        "verdict.",
        ["program", "threads", "instructions", "runs", "median", "", "fastest", "", "peak memory"],
    )

    def one(name: str, scale: float, threads: int, sizes: tuple[str, ...], runs: int) -> None:
        who = validator.workload(name, scale, threads, sizes)
        results = [validator.simulate(who, machines.for_threads(threads), ALLOCATOR) for _ in range(runs)]
        peak = max(result["host_peak_kib"] for result in results) / 2**20
        speeds = [result["mips"] for result in results]
        cells = []
        for what, value in (("median", statistics.median(speeds)), ("fastest", max(speeds))):
            failed = f"{name} with {threads}, {what}: {value:.1f} million a second, not {LEAST[threads]}"
            cells += [f"{value:.1f}", section.verdict(value >= LEAST[threads], failed)]
        row = [name, str(threads), f"{results[0]['instructions']:,}", str(runs), *cells, f"{peak:.2f} GiB"]
        section.verdict(peak < MOST_GIB, f"{name} with {threads}: {peak:.1f} GiB")
        section.rows.append(row)

    name, scale, threads, sizes = SHORT[0]
    one(name, scale, threads, sizes, ROUNDS)
    for share in (0.4, 1.0):
        one(name, billions * share / ESPRESSO, threads, sizes, 1)
    for short in SHORT[1:]:
        one(*short, ROUNDS)
    return section


AGAINST = {1: 0.9, 16: 0.8}  # of the other build's speed, by threads


def _presets_of(commit: str, folder: Path) -> Path:
    """The presets as they were in a commit of this repository."""
    where = machines.PRESETS.relative_to(paths.ROOT)
    packed = subprocess.run(["git", "archive", commit, where], cwd=paths.ROOT, stdout=subprocess.PIPE)
    if packed.returncode != 0:
        raise run.CannotRun(f"{commit}: git has no presets of it")
    folder.mkdir()
    subprocess.run(["tar", "-x", "-C", folder], input=packed.stdout, check=True)
    return folder / where


def _speed(results: dict) -> float:
    return results["instructions"] / results["host_cpu_s"] / 1e6


def against(validator: Validator, plugin: Path, commit: str) -> Section:
    if not plugin.is_file() or not shutil.which(str(run.Build(plugin).tool)):
        raise run.CannotRun(f"{plugin}: there must be another build's plugin, and its annex-machine beside it")
    other = run.Build(plugin.resolve(), _presets_of(commit, validator.scratch / "presets"))
    section = Section(
        f"Speed, against {commit}",
        "Million instructions simulated in a second of CPU time, by turns with the other build and this one, "
        f"{ROUNDS} times: the median of the ratios. Bounds: {AGAINST[1]} with a thread, {AGAINST[16]} with 16. Each on "
        "the machine as its own presets have it.",
        ["program", "threads", "before", "now", "ratios, sorted", "median", ""],
    )
    for name, scale, threads, sizes in SHORT:
        who = validator.workload(name, scale, threads, sizes)
        machine = machines.for_threads(threads)
        ratios, speeds = [], []
        for _ in range(ROUNDS):
            # Older builds know no other layout.
            theirs = _speed(
                validator.simulate(who, str(other.presets / f"{machine}.toml"), ALLOCATOR, build=other, layout=0)
            )
            ours = _speed(validator.simulate(who, machine, ALLOCATOR, layout=0))
            ratios.append(ours / theirs)
            speeds.append((theirs, ours))
        median = statistics.median(ratios)
        section.rows.append(
            [
                name,
                str(threads),
                *(f"{statistics.median(side):.1f}" for side in zip(*speeds, strict=True)),
                ", ".join(f"{ratio:.2f}" for ratio in sorted(ratios)),
                f"{median:.2f}",
                section.verdict(median >= AGAINST[threads], f"{name}: {median:.2f}, not {AGAINST[threads]}"),
            ]
        )
    return section
