"""Kernels of one thread, against what they must cost."""

from annex_lab.sim import kernels
from annex_lab.sim.validation.section import Section
from annex_lab.sim.validation.validator import Validator

MACHINE = "speedmalloc-1"


def of_kernels(validator: Validator) -> Section:
    section = Section(
        "Kernels of known cost",
        f"Cycles an operation on {MACHINE}, from the difference of two counts, against what the machine's "
        "parameters say it must be (`sim/kernels.py` has the formulas).",
        ["kernel", "what", "cycles", "expected", "bound", ""],
    )
    machine = validator.parameters(MACHINE)
    base = 0.0
    for kernel in kernels.KERNELS:
        few, many = (
            validator.simulate(validator.kernel(kernel.kernel, rounds, kernel.size), MACHINE)["cycles"]
            for rounds in (kernel.rounds, 2 * kernel.rounds)
        )
        each = (many - few) / kernel.rounds / kernel.operations
        if kernel.name == "branches-alternating":
            base = each
        found = each - base if kernel.name == "branches-random" else each
        expected = kernel.expected(machine)
        bound = kernel.tolerance * (expected or 1)
        verdict = section.verdict(abs(found - expected) <= bound, f"{kernel.name}: {found:.2f} for {expected:.2f}")
        section.rows.append([kernel.name, kernel.what, f"{found:.2f}", f"{expected:.2f}", f"± {bound:.2f}", verdict])
    return section
