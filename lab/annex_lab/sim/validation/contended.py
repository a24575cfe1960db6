"""Kernels whose cores fight for lines: what an operation costs from one core to sixty-four."""

from annex_lab.sim import kernels, machines
from annex_lab.sim.validation.section import NO_BOUND, Section
from annex_lab.sim.validation.validator import Validator

CORES = (1, 2, 4, 8, 16, 64)
PUBLISHED_NS = (21, 50)  # core to core, on small desktop parts and on large server meshes
EXACT_WITHIN = 0.1
NOISE = 0.02  # of a cost, that a smaller one may be below it before it counts as fallen
OPERATIONS = 1600  # counted, of all cores together
MESSAGES = 400  # counted, of each pair


def machine_of(cores: int) -> str:
    """The text of the paper's machine with so many cores, whichever of them are presets."""
    return f'base = "{machines.FAMILY}-1"\nname = "{machines.FAMILY}-{cores}"\ncores = {cores}\n' + (
        f"[llc]\nbytes = {cores * (2 << 20)}\n"
    )


def cost(few: int, many: int, operations: int) -> float:
    """Cycles from one operation to the next, of all cores together, or of a pair; from the cycles of two counts, of
    which one has so many operations more."""
    return (many - few) / operations


def fallen(costs: list[float]) -> bool:
    """Whether an operation gets cheaper anywhere as cores are added."""
    return any(later < (1 - NOISE) * max(costs[: i + 1]) for i, later in enumerate(costs[1:]))


def of_contended(validator: Validator) -> Section:
    low, high = PUBLISHED_NS
    section = Section(
        "Lines that cores fight for",
        "Cycles from one operation to the next, of all cores together (of a queue: of a pair), on the paper's machine "
        "with so many cores, from the difference of two counts. Bounds: with two cores or more, at least what the "
        "parameters' own hand-over takes (`sim/kernels.py` has the formulas); where that is the whole cost, within "
        f"{100 * EXACT_WITHIN:.0f} % of it; and no number of cores is cheaper than a smaller one (by more than "
        f"{100 * NOISE:.0f} %), but where the last level does the operations, which overlap on their way "
        "there: of those, no core's own pace is faster. "
        f"Published: {low} to {high} ns for each hand-over from core to core, one after the other, between real cores. "
        "Each core's own pace, the quantity of earlier pages, is that many times the number of cores.",
        [
            "kernel",
            "what",
            *(f"{cores} core{'s' if cores > 1 else ''}" for cores in CORES),
            "at least",
            "published",
            "",
        ],
    )
    for kernel in kernels.CONTENDED:
        files = {
            cores: validator.machine(f"{kernel.name}-{cores}", machine_of(cores) + kernel.machine) for cores in CORES
        }
        parameters = validator.parameters(files[2])
        counts = [cores for cores in CORES if cores > 1 or kernel.alone]
        rounds = {cores: MESSAGES if kernel.in_pairs else max(OPERATIONS // cores, kernel.each) for cores in counts}
        jobs = [(cores, times) for cores in counts for times in (1, 2)]
        cycles = validator.each(
            lambda job, kernel=kernel, rounds=rounds, files=files: validator.simulate(
                validator.kernel(kernel.kernel, job[1] * rounds[job[0]], job[0]), files[job[0]]
            )["cycles"],
            jobs,
        )
        more = [rounds[cores] * (1 if kernel.in_pairs else cores) for cores in counts]
        costs = [cost(*pair) for pair in zip(cycles[::2], cycles[1::2], more, strict=True)]
        least = kernel.least(parameters)
        together = [value for cores, value in zip(counts, costs, strict=True) if cores > 1]
        wrong = []
        if round(min(together), 1) < least:
            wrong.append(f"{min(together):.1f} cycles, less than {least:.0f}")
        if kernel.exact and any(abs(value / kernel.exact(parameters) - 1) > EXACT_WITHIN for value in together):
            wrong.append(f"{min(together):.1f} to {max(together):.1f} cycles for {kernel.exact(parameters):.0f}")
        paces = [value * cores for cores, value in zip(counts, costs, strict=True)]
        if fallen(paces if kernel.may_fall else costs):
            wrong.append("cheaper with more cores")
        cells = [] if kernel.alone else [NO_BOUND]
        ghz = parameters["ghz"]
        section.rows.append(
            [
                kernel.name,
                kernel.what,
                *cells,
                *(f"{value:.1f}" for value in costs),
                f"{least:.0f}",
                f"{kernel.hand_overs * low * ghz:.0f} to {kernel.hand_overs * high * ghz:.0f}"
                if kernel.hand_overs
                else NO_BOUND,
                section.verdict(not wrong, f"{kernel.name}: {', '.join(wrong)}"),
            ]
        )
    return section
