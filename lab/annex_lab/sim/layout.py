"""Where the parts of a simulated program lie, by a number: on Linux, each start of a program has other addresses.

Linux draws four of them, each by itself: where mappings begin (and with them the libraries), the program, its heap, its
stack. Here, as QEMU lays them out and as a number moves them,

    program    at two thirds of all addresses, so that it is moved by what these are made more by (-R)
    mappings   at a third of all addresses, which is moved half as far. The stack is the first of them
    stack      by 16 bytes, below a longer environment (surroundings.padding)
    heap       behind the program, after a gap that the plugin keeps (SystemCalls::heap_begins)

Number 0 is QEMU's own layout, in which mappings and program begin at multiples of a gibibyte. Not moved are programs
that are linked for fixed addresses (their heap is), and the distance between the stack's pages and the libraries.
"""

import hashlib
from dataclasses import dataclass

PAGE = 4096
# That the program has to itself at least, from 0 on. So many, as snmalloc maps 256 GiB at once, and TCMalloc tells
# kinds of memory apart by the upper ones of 45 bits of their addresses. No more, as QEMU has mappings begin at a third
# of 128 TiB where there are more than that: neither would they move, nor would a heap have room before them.
ADDRESSES = 40 << 40
# How many places there are for each. Linux has as many for the stack within its pages' 8 KiB, a 1024th for mappings and
# program, and for the heap the same (a 32nd since 6.9).
MAPPINGS = 1 << 18  # pages
HEAP = 1 << 13  # pages
STACK = PAGE // 16  # times 16 bytes


@dataclass(frozen=True)
class Layout:
    number: int
    mappings: int  # pages by which they lie higher, and the program by twice as many
    heap: int  # pages between the program and its heap
    stack: int  # times 16 bytes by which it begins lower

    @property
    def addresses(self) -> tuple[str, ...]:
        """QEMU's options: the program has all of them to itself, and QEMU says where its mappings lie.

        Else they would lie where the host's kernel finds room among QEMU's own.
        """
        return ("-B", "0", "-R", str(ADDRESSES + 3 * PAGE * self.mappings))

    @property
    def gap(self) -> int:
        """Bytes before the heap."""
        return PAGE * self.heap

    @property
    def lower(self) -> int:
        """Bytes by which the stack begins lower."""
        return 16 * self.stack


def numbered(number: int) -> Layout:
    if number == 0:
        return Layout(0, 0, 0, 0)
    drawn = hashlib.sha256(f"layout {number}".encode()).digest()
    mappings, heap, stack = (int.from_bytes(drawn[at : at + 8], "little") for at in (0, 8, 16))
    return Layout(number, mappings % MAPPINGS, heap % HEAP, stack % STACK)
