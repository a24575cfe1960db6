"""How far one core may run ahead of the others: by quantum, and against lock-step."""

import statistics

from annex_lab.sim import run
from annex_lab.sim.validation.section import NO_BOUND, Section
from annex_lab.sim.validation.validator import OVER_SEEDS, Validator

MACHINE = "speedmalloc-16"
THREADS = 16


def _standard(validator: Validator) -> int:
    return validator.parameters(MACHINE)["quantum"]


QUANTA = (100, 250, 500, 1000)
QUANTUM_BOUND = 0.1  # of its cycles, from the shortest's
# How much of a workload, how large its structures are, under which allocator.
QUANTUM_RUNS = (
    ("mstress", 1, ("--items=200",), "annex"),
    ("xmalloc", 0.016, ("--batch=256", "--queue=16"), "tcmalloc"),
    ("sh6bench", 0.001, (), "tcmalloc"),
    ("cache-scratch", 0.0001, (), "tcmalloc"),
)


def by_quantum(validator: Validator) -> Section:
    standard = _standard(validator)
    section = Section(
        "How far cores may run apart, by quantum",
        f"Cycles of programs whose threads compete, with {THREADS} threads, by how far one core may run ahead of the "
        f"slowest, the quantum: means over {OVER_SEEDS}, beside each how far the seeds are apart, and the "
        "million instructions simulated a second (on each CPU of the host, all busy). Shorter is truer and slower. "
        "Bound: with "
        f"the standard quantum, {standard}, within {100 * QUANTUM_BOUND:.0f} % of what the shortest says.",
        ["program", "allocator", *(f"{quantum:,} cycles" for quantum in QUANTA), ""],
    )
    machine_of = {
        quantum: validator.machine(f"quantum-{quantum}", f'base = "{MACHINE}"\nquantum = {quantum}\n')
        for quantum in QUANTA
    }
    for name, scale, sizes, allocator in QUANTUM_RUNS:
        who = validator.workload(name, scale, THREADS, sizes)
        of_each = validator.each_with_seeds(
            lambda quantum, seed, who=who, allocator=allocator: validator.simulate(
                who, machine_of[quantum], allocator, seed=seed
            ),
            QUANTA,
        )
        first, cells, verdict = None, [], NO_BOUND
        for quantum, results in zip(QUANTA, of_each, strict=True):
            cycles = [result["cycles"] for result in results]
            mean = statistics.mean(cycles)
            first = first or mean
            off, apart = mean / first - 1, (max(cycles) - min(cycles)) / mean
            mips = statistics.mean(result["mips"] for result in results)
            cells.append(f"{mean:,.0f} ({100 * off:+.0f} %; {100 * apart:.0f} %), {mips:.1f}")
            if quantum == standard:
                verdict = section.verdict(
                    abs(off) <= QUANTUM_BOUND, f"{name} under {allocator}: {100 * off:+.0f} % with {standard}"
                )
        section.rows.append([name, allocator, *cells, verdict])
    return section


LOCK_STEP_BOUND = 0.03
# Long enough that most cycles of the cores are the threads' own work and not the start; in lock-step two million
# instructions are simulated a second.
LOCK_STEP_RUNS = (
    ("mstress", 1, ("--items=60",), "annex"),
    ("xmalloc", 0.016, ("--batch=256", "--queue=16"), "mimalloc3"),
    ("sh6bench", 5e-4, (), "gperftools"),
    ("cache-scratch", 1e-4, (), "gperftools"),
    ("larson", 1e-4, ("--slots=70",), "mimalloc3"),
    ("sh8bench", 1e-3, (), "mimalloc3"),
)
POLLING = ("poll-loop", 200)  # the kernel, and its rounds


def against_lock_step(validator: Validator) -> Section:
    section = Section(
        "How far cores may run apart, against lock-step",
        f"Cycles with {THREADS} threads as cores usually run, up to a quantum of {_standard(validator)} cycles apart, "
        "and in lock-step, where every instruction of every core takes effect in the order of simulated time "
        f"(`annex-lab sim --lock-step`). Means over {OVER_SEEDS}, beside each how far the seeds are apart. "
        "Programs whose threads compete, and the kernel whose threads poll a word. Bound: within "
        f"{100 * LOCK_STEP_BOUND:.0f} %.",
        ["program", "allocator", "instructions", "cycles", "in lock-step", "", ""],
    )
    runs: list[tuple[str, str, run.Guest]] = [
        (name, allocator, validator.workload(name, scale, THREADS, sizes))
        for name, scale, sizes, allocator in LOCK_STEP_RUNS
    ]
    kernel, rounds = POLLING
    runs.append((kernel, "glibc", validator.kernel(kernel, rounds, THREADS)))
    for name, allocator, who in runs:
        of_both = validator.each_with_seeds(
            lambda lock_step, seed, who=who, allocator=allocator: validator.simulate(
                who, MACHINE, allocator, seed=seed, lock_step=lock_step
            ),
            (False, True),
        )
        usual, exact = ([result["cycles"] for result in results] for results in of_both)
        off = statistics.mean(usual) / statistics.mean(exact) - 1
        section.rows.append(
            [
                name,
                allocator,
                f"{of_both[1][0]['instructions']:,}",
                *(
                    f"{statistics.mean(cycles):,.0f} ({100 * (max(cycles) / min(cycles) - 1):.1f} %)"
                    for cycles in (usual, exact)
                ),
                f"{100 * off:+.1f} %",
                section.verdict(abs(off) <= LOCK_STEP_BOUND, f"{name} under {allocator}: {100 * off:+.1f} %"),
            ]
        )
    return section
