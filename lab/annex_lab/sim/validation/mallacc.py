"""What Mallacc's section 3 says of TCMalloc on its machine."""

from annex_lab.sim import run
from annex_lab.sim.validation.section import Section
from annex_lab.sim.validation.validator import Validator

ALLOCATOR = "gperftools"
MACHINE = "haswell-1"
FAST_CALL = (18, 20)  # cycles
SHORT_SHARE = 0.6  # of malloc's time in calls under 100 cycles
LONE = "lone-mallocs"
MICRO = "tp-small"  # the paper's own
# As near to the paper's programs as can be had: its perlbench and its xapian, and one more.
PROGRAMS = (("xalan", 1.0), ("xapian", 0.1), ("perl-hashes", 0.05))


def _mallocs(validator: Validator, who: run.Guest) -> dict:
    return validator.simulate(who, MACHINE, ALLOCATOR)["allocator"]["functions"]["allocate"]


def _own_cycles(found: dict) -> int:
    return found["cycles"] - found["kernel_cycles"]


def _short_share(found: dict) -> float:
    return found["cycles_in_calls_below_100"] / _own_cycles(found)


def _row(section: Section, name: str, found: dict, share: str, verdict: str) -> None:
    calls = found["calls"]
    each = f"{found['instructions'] / calls:.1f}", f"{_own_cycles(found) / calls:.2f}"
    section.rows.append([name, f"{calls:,}", *each, share, verdict])


def of_mallacc(validator: Validator) -> Section:
    low, high = FAST_CALL
    section = Section(
        "Mallacc's facts",
        f"On {MACHINE} under gperftools' TCMalloc (the paper's section 3), without the kernel's share (page faults), "
        f"as in the paper's user-level simulator. First, a malloc of tp_small's sizes takes {low} to {high} cycles: "
        f"bound on the mean of {MICRO}'s own calls, which follow each other closely; and, beside it, on each call "
        f"alone between fences (the kernel `{LONE}`, from the difference of two counts), which was the bound before. "
        f"Second, more than {100 * SHORT_SHARE:.0f} % of malloc's time is in calls under 100 cycles, on real programs.",
        ["program", "calls of malloc", "instructions each", "cycles each", "time in calls under 100 cycles", ""],
    )

    def bound_on_call(name: str, found: dict) -> str:
        each = round(_own_cycles(found) / found["calls"], 2)
        return section.verdict(low <= each <= high, f"{name}: a malloc takes {each:.2f} cycles, not {low} to {high}")

    few, many = (_mallocs(validator, validator.kernel(LONE, rounds)) for rounds in (100, 300))
    more = {name: many[name] - few[name] for name in few if isinstance(few[name], int)}
    _row(section, LONE, more, "-", bound_on_call(LONE, more))
    micro = _mallocs(validator, validator.workload(MICRO, 0.003))
    _row(section, MICRO, micro, f"{100 * _short_share(micro):.0f} %", bound_on_call(MICRO, micro))
    for name, scale in PROGRAMS:
        found = _mallocs(validator, validator.workload(name, scale))
        share = _short_share(found)
        what = f"{name}: {100 * share:.0f} % in short calls, not more than {100 * SHORT_SHARE:.0f}"
        _row(section, name, found, f"{100 * share:.0f} %", section.verdict(share > SHORT_SHARE, what))
    return section
