"""What all sections need: programs of the workbench, simulated, in a folder of their own."""

import dataclasses
import itertools
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from annex_lab import allocators as known
from annex_lab import native, paths, programs
from annex_lab.programs import inputs
from annex_lab.programs.model import Context
from annex_lab.sim import guest, machines, run

console = Console(stderr=True)
# For both sides of a comparison with this machine: the same string functions, which are chosen by what the processor
# can do.
PLAIN_STRINGS = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512VL,-AVX512BW,-AVX2,-AVX,-ERMS,-FSRM,-BMI2,-MOVBE,-SSE4_2"}

SEEDS = (1, 2, 3)  # where a mean is over several
OVER_SEEDS = f"{len(SEEDS)} seeds, each with addresses of its own"

One, Result = TypeVar("One"), TypeVar("Result")


class Validator:
    """Runs programs on simulated machines; its files are in `scratch`."""

    def __init__(self, scratch: Path):
        self.scratch = scratch
        self.numbers = itertools.count(1)  # of runs

    def workload(self, name: str, scale: float, threads: int = 1, sizes: tuple[str, ...] = ()) -> run.Guest:
        """`sizes`: options of a workload of ours, where a smaller structure does."""
        (program,) = programs.choose("all", [name])
        context = Context(inputs.folder(paths.DATA), self.scratch / "work", native.workloads(), scale, threads)
        context.scratch.mkdir(exist_ok=True)
        program.prepare(context)
        task = program.with_options(sizes).run(context)
        return run.Guest(
            guest.command(task.argv), env=dict(task.env), stdin=task.stdin, cwd=task.cwd or context.scratch
        )

    def kernel(self, name: str, rounds: int, size: int | None = None) -> run.Guest:
        return run.Guest([str(native.kernels()), name, str(rounds), *([str(size)] if size else [])])

    def machine(self, name: str, text: str) -> str:
        """A machine of ours, by what it says: its file."""
        file = self.scratch / f"{name}.toml"
        file.write_text(text)
        return str(file)

    def parameters(self, machine: str) -> dict:
        return run.parameters(machines.find(machine, self.scratch))

    def simulate(
        self,
        who: run.Guest,
        machine: str,
        allocator: str = "glibc",
        env: dict | None = None,
        seed: int = 1,
        lock_step: bool = False,
        build: run.Build = run.OURS,
        printed: bool = False,
        layout: int | None = None,
    ) -> dict:
        """The results, with the host's peak memory of the run; `printed`: and what the program printed. Thread-safe."""
        found = known.find(allocator)
        settings = known.merged({**found.env, **who.env}, env or {})
        if known.is_ours(found.name):
            settings["ANNEX_RESERVE"] = run.RESERVE
        folder = self.scratch / f"run{next(self.numbers)}"
        folder.mkdir()
        output = folder / "output"
        with open(output, "wb") as stdout:
            done = run.run(
                dataclasses.replace(who, library=found.preload, env=settings),
                machines.find(machine, folder),
                folder,
                seed,
                stdout=stdout,
                lock_step=lock_step,
                build=build,
                layout=layout,
            )
        if done.results is None or not done.results["complete"]:
            raise run.CannotRun(f"{who.argv[0]} under {allocator} on {machine}: status {done.status}")
        console.print(
            f"  {Path(who.argv[0]).name} {allocator} {Path(machine).stem}: {done.results['instructions'] / 1e6:.0f} M, "
            f"{done.results['mips']:.0f} MIPS",
            highlight=False,
        )
        if printed:
            done.results["output"] = output.read_text(errors="replace")
        return done.results

    def each(self, simulate: Callable[[One], Result], of: Iterable[One]) -> list[Result]:
        """One run for each CPU of the host at a time; a run's results do not depend on what runs beside it."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(simulate, of))

    def each_with_seeds(self, simulate: Callable[[One, int], Result], of: Iterable[One]) -> list[list[Result]]:
        """The same, once with each seed: a list for each of `of`."""
        jobs = [(one, seed) for one in of for seed in SEEDS]
        results = self.each(lambda job: simulate(*job), jobs)
        return [results[i : i + len(SEEDS)] for i in range(0, len(results), len(SEEDS))]
