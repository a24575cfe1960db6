"""How much of where blocks lie is chance: entropies, estimated from samples of addresses and of distances.

No sample shows all the entropy there is, so each estimate has a bound that depends on how many were taken (n):

    best guess   the share of the most frequent value: how often an attacker is right who bets on it. At least 1 / n.
    min          -log2(best guess). At most log2 n.
    Shannon      of the frequencies found. At most log2 n.
    collision    -log2 of the share of pairs that agree. At most log2 of the number of pairs, and said to be more than
                 that where none agrees. The whole (Shannon) entropy is no less.
    bits         the sum of each bit's own entropy. The whole entropy is no more, as bits may depend on each other.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path

from annex_lab.allocators import Allocator
from annex_lab.attacks import program as attack_program

SIZES = (64, 1000, 1 << 20)
ADDRESS_BITS = 48
NEAR = 32  # bytes between two blocks that count as none: a header, padding
BLOCKS = 101  # of each size in a process whose distances are taken


@dataclass(frozen=True)
class Entropy:
    samples: int
    best_guess: float
    min_bits: float
    shannon_bits: float
    collision_bits: float
    collision_is_bound: bool  # no two agree: it is more than that
    bits: float


def entropy(values: Sequence[int]) -> Entropy:
    counts = Counter(values)
    n = len(values)
    shares = [count / n for count in counts.values()]
    pairs = n * (n - 1) / 2
    agreeing = sum(count * (count - 1) / 2 for count in counts.values())
    ones = [sum(value >> bit & 1 for value in values) / n for bit in range(ADDRESS_BITS)]
    return Entropy(
        samples=n,
        best_guess=max(shares),
        min_bits=math.log2(1 / max(shares)),
        shannon_bits=sum(share * math.log2(1 / share) for share in shares),
        collision_bits=math.log2(pairs / (agreeing or 1)) if pairs else 0.0,
        collision_is_bound=agreeing == 0,
        bits=sum(_binary(share) for share in ones),
    )


def _binary(share: float) -> float:
    return sum(part * math.log2(1 / part) for part in (share, 1 - share) if part)


@dataclass
class Places:
    """What one process says: where something of libc's is, and its blocks by size: (address, room)."""

    libc: int
    blocks: dict[int, list[tuple[int, int]]] = field(default_factory=dict)


def parse(text: str) -> Places:
    first, *rest = text.splitlines()
    places = Places(int(first, 16))
    for line in rest:
        bytes_, address, room = line.split()
        places.blocks.setdefault(int(bytes_), []).append((int(address, 16), int(room)))
    return places


@dataclass(frozen=True)
class Randomness:
    """Of one allocator and one size."""

    bytes: int
    first: Entropy  # where the first block is, from process to process
    first_from_libc: Entropy  # the same, for an attacker who knows where libc is
    distance: Entropy  # from a block to the next allocated
    behind: float  # how often the next lies directly behind

    def as_dict(self) -> dict:
        return asdict(self)


def of_places(bytes_: int, firsts: list[Places], rows: list[Places]) -> Randomness:
    """From the first blocks of many processes, and many blocks of a few."""
    pairs = [pair for places in rows for pair in pairwise(places.blocks[bytes_])]
    addresses = [(places.blocks[bytes_][0][0], places.libc) for places in firsts]
    return Randomness(
        bytes_,
        first=entropy([address for address, _ in addresses]),
        first_from_libc=entropy([address - libc for address, libc in addresses]),
        distance=entropy([second[0] - first[0] for first, second in pairs]),
        behind=sum(0 <= second[0] - first[0] - first[1] <= NEAR for first, second in pairs) / len(pairs),
    )


def steps(allocators: list[Allocator], samples: int) -> int:
    return len(allocators) * (samples + _rows(samples))


def _rows(samples: int) -> int:
    return max(1, samples // (BLOCKS - 1))


def measure(
    program: Path, allocators: list[Allocator], samples: int, found: dict[str, list[Randomness]]
) -> Iterator[str]:
    """Fills `found` by allocator, and says before each process whose it is."""
    sizes = [str(size) for size in SIZES]
    for allocator in allocators:
        firsts, rows = [], []
        for kept, processes, count in ((firsts, samples, 1), (rows, _rows(samples), BLOCKS)):
            for _ in range(processes):
                yield f"addresses {allocator.name}"
                kept.append(parse(attack_program.output(program, allocator, "--addresses", str(count), *sizes)))
        found[allocator.name] = [of_places(size, firsts, rows) for size in SIZES]
