"""make run: real programs on the C library's allocator and on both flavours of Annex, and what each run costs.

The programs are the release's own and do real work (tests/real/inputs); outputs must be equal or the table is not
printed. Rounds are interleaved, so that whatever disturbs the machine falls on all allocators alike; medians are
shown. `make bench` is the thorough measurement, with other allocators and more programs.
"""

import argparse
import hashlib
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INPUTS = ROOT / "tests/real/inputs"
RUNNER_SOURCE = ROOT / "lab/annex_lab/native/runner.c"
GTEST = Path("/usr/src/googletest/googletest")
MIN_ROUNDS, MAX_ROUNDS = 3, 9


@dataclass
class Program:
    name: str
    command: list[str]
    stdin: Path = Path("/dev/null")
    env: dict[str, str] = field(default_factory=dict)


@dataclass
class Run:
    """What one run used. Each field is a column of the table."""

    wall_s: float
    cpu_s: float
    peak_mib: float
    faults: float


COLUMNS = (("wall_s", "wall s", "{:.3f}"), ("cpu_s", "CPU s", "{:.3f}"), ("peak_mib", "peak MiB", "{:.1f}"),
           ("faults", "page faults", "{:,.0f}"))  # fmt: skip


def programs(scratch):
    """Real programs on real work of about half a second to a second each."""
    library = scratch / "library.xml"
    with open(library, "wb") as out:
        subprocess.run(["/usr/bin/python3", INPUTS / "library_xml.py", "15000"], stdout=out, check=True)
    all_on_malloc = {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "1"}
    yield Program("sqlite3", ["sqlite3", "-batch", ":memory:"], stdin=INPUTS / "items.sql")
    yield Program("python3", ["python3", str(INPUTS / "records.py")], env=all_on_malloc)
    yield Program("perl", ["perl", str(INPUTS / "words.pl")], env={"PERL_HASH_SEED": "0"})
    yield Program("xalan", ["xalan", "-in", str(library), "-xsl", str(INPUTS / "catalogue.xsl")])
    source = ["-I", str(GTEST), "-I", str(GTEST / "include"), str(GTEST / "src/gtest-all.cc")]
    yield Program("g++ -fsyntax-only", ["g++", "-std=c++17", "-fsyntax-only", *source])


class Machine:
    """Runs programs by the lab's runner, which adds nothing of its own to what it measures."""

    def __init__(self, scratch):
        self.dir = scratch
        self.runner = scratch / "runner"
        subprocess.run(["cc", "-O2", "-static", "-o", self.runner, RUNNER_SOURCE], check=True)

    def run(self, program, library):
        """Returns a Run and a checksum of the output."""
        path = "/usr/bin:/bin"
        env = {"PATH": path, "LC_ALL": "C.UTF-8", "HOME": str(self.dir), **program.env}
        report, out, err = self.dir / "report", self.dir / "out", self.dir / "err"
        executable = shutil.which(program.command[0], path=path)
        files = [str(report), str(library or ""), "1", str(program.stdin), str(out), str(err)]
        subprocess.run([self.runner, *files, executable, *program.command[1:]], env=env, cwd=self.dir, check=True)
        ended = [line.split() for line in report.read_text().splitlines() if line.startswith("run ")]
        if not ended or ended[0][7] != "0":
            status = ended[0][7] if ended else "none"
            sys.exit(f"{program.name} on {library or 'glibc'} failed, status {status}:\n{err.read_text()[-2000:]}")
        wall, user, system, peak, minor, major = map(int, ended[0][1:7])
        used = Run(wall / 1e9, (user + system) / 1e6, peak / 1024, minor + major)
        return used, hashlib.sha256(out.read_bytes()).hexdigest()


def measure(machine, chosen, allocators, seconds):
    """All runs by (program, allocator): whole rounds until the time is up."""
    runs = {(program.name, name): [] for program in chosen for name in allocators}
    outputs = {}
    started = time.monotonic()
    rounds = 0
    while rounds < MAX_ROUNDS:
        rounds += 1
        for program in chosen:
            names = list(allocators)
            for name in names[rounds % len(names) :] + names[: rounds % len(names)]:
                used, output = machine.run(program, allocators[name])
                runs[program.name, name].append(used)
                if outputs.setdefault(program.name, output) != output:
                    sys.exit(f"{program.name}: its output on {name} differs from that on another allocator")
        elapsed = time.monotonic() - started
        if rounds >= MIN_ROUNDS and elapsed * (rounds + 1) / rounds > seconds:
            break
    return runs, rounds


def medians(runs):
    return Run(*(statistics.median(getattr(run, key) for run in runs) for key, _, _ in COLUMNS))


def table(chosen, allocators, runs):
    """One block a program, one line an allocator; each number beside its ratio to the first allocator's."""
    first = next(iter(allocators))
    ratios = {name: {key: [] for key, _, _ in COLUMNS} for name in allocators}
    yield f"{'program':<20}{'allocator':<14}" + "".join(f"{title:>18}" for _, title, _ in COLUMNS)
    for program in chosen:
        yield ""
        base = medians(runs[program.name, first])
        for name in allocators:
            used = medians(runs[program.name, name])
            line = f"{program.name if name == first else '':<20}{name:<14}"
            for key, _, form in COLUMNS:
                value, of = getattr(used, key), getattr(base, key)
                ratio = value / of if of else 1.0
                ratios[name][key].append(ratio)
                line += f"{form.format(value):>11}" + (f"{'':7}" if name == first else f" x{ratio:4.2f} ")
            yield line.rstrip()
    yield ""
    for name in list(allocators)[1:]:
        line = f"{'geometric mean':<20}{name:<14}"
        for key, _, _ in COLUMNS:
            mean = math.exp(statistics.fmean(math.log(max(ratio, 1e-9)) for ratio in ratios[name][key]))
            line += f"{'':11} x{mean:4.2f} "
        yield line.rstrip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build/release", help="directory of the libraries")
    parser.add_argument("--seconds", type=float, default=45, help=f"time to spend, after {MIN_ROUNDS} rounds")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    allocators = {"glibc": None, "annex solo": build / "libannex-solo.so", "annex shared": build / "libannex.so"}
    for library in filter(None, allocators.values()):
        if not library.exists():
            sys.exit(f"{library} is not built: make build")
    with tempfile.TemporaryDirectory(prefix="annex-run-") as name:
        machine = Machine(Path(name))
        chosen = list(programs(Path(name)))
        print(f"Real programs on {os.cpu_count()} CPUs, each on {len(allocators)} allocators, about "
              f"{arguments.seconds:.0f} s ...\n", flush=True)  # fmt: skip
        runs, rounds = measure(machine, chosen, allocators, arguments.seconds)
        print("\n".join(table(chosen, allocators, runs)))
        print(f"\nMedians of {rounds} interleaved rounds; x is the ratio to glibc, below 1 is better. Outputs equal.")
        print("Run a program of yours on it: build/release/annex run [--mode solo] [--stats] -- PROGRAM ARGUMENTS")


main()
