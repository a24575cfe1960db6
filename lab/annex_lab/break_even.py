"""NextGen-Malloc's analytic model (its section 4.1): how many cache and TLB misses offloading must save to pay off.

    extra cycles   = calls * cycles a call
    misses to save = cycles a call / cycles a miss, for each call of malloc or free and the program until the next one

The paper charges four atomics of 67 cycles for a call (malloc and free alike, 268 cycles) and 214 cycles for a miss, so
1.25 misses. Fed from a run of `annex-lab bench --latency`: the calls are counted there, and the cost of a call is what
the offload flavour's calls took more than the yardstick's, on the mean, instead of the paper's assumption.
"""

from dataclasses import dataclass

PAPER_CYCLES_A_CALL = 4 * 67
PAPER_CYCLES_A_MISS = 214


@dataclass(frozen=True)
class Estimate:
    calls: int
    cycles_a_call: float  # more than without offloading; below 0 where it is cheaper already
    cycles_a_miss: float

    @property
    def extra_cycles(self) -> float:
        return self.calls * self.cycles_a_call

    @property
    def misses_a_call(self) -> float:
        """To be saved for the run to take as long as before; none where a call costs nothing more."""
        return max(0.0, self.cycles_a_call / self.cycles_a_miss)


def estimate(
    calls: int, cycles_a_call: float = PAPER_CYCLES_A_CALL, cycles_a_miss: float = PAPER_CYCLES_A_MISS
) -> Estimate:
    """The model. ValueError where a number makes no sense."""
    if calls < 0 or cycles_a_miss <= 0:
        raise ValueError("calls are counted from 0, and a miss costs something")
    return Estimate(calls, cycles_a_call, cycles_a_miss)


def mean_ns(item: dict) -> float:
    """Of an entry of `latencies`: the mean time of a call, by its histogram."""
    return sum(upper * count for upper, count in item["histogram"]) / max(item["calls"], 1)


def of_results(document: dict, offload: str, yardstick: str, ghz: float, cycles_a_miss: float) -> dict[str, Estimate]:
    """By program, where both allocators' latencies were measured."""
    found: dict[str, dict[str, list[dict]]] = {}
    for item in document.get("latencies", []):
        found.setdefault(item["workload"], {}).setdefault(item["allocator"], []).append(item)
    estimates = {}
    for program, by_allocator in found.items():
        if offload not in by_allocator or yardstick not in by_allocator:
            continue
        calls = sum(item["calls"] for item in by_allocator[yardstick])
        spent = {
            name: sum(mean_ns(item) * item["calls"] for item in by_allocator[name])
            / max(sum(item["calls"] for item in by_allocator[name]), 1)
            for name in (offload, yardstick)
        }
        estimates[program] = estimate(calls, (spent[offload] - spent[yardstick]) * ghz, cycles_a_miss)
    return estimates
