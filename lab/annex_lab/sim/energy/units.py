"""Accelerators of the allocator in a core: Mallacc's malloc cache, and the tables of Memento+.

Each is small arrays of CACTI's, of which the smallest is larger than some of them: a bound from above. Their
instructions are micro-ops, whose energy is the core's; here is what the arrays take.
"""

import math

from annex_lab.sim.energy import arrays
from annex_lab.sim.energy.arrays import Array
from annex_lab.sim.energy.parameters import Drawn, Quantity

PICO, MILLI = 1e-12, 1e-3
UM2 = 1e-6  # mm2

# --- Mallacc --------------------------------------------------------------------------------------------------------

CAM_ENTRY_BYTES = 8  # CACTI's narrowest; Mallacc 6.4 has 36 bits: two indices, a class, the order of use
SRAM_ENTRY_BITS = 117  # Mallacc 6.4: two pointers of 48 bits, a size of 20, a valid bit


def malloc_caches(machine: dict) -> int:
    """How many malloc caches there are: beside support cores one in each of them, else one in each core."""
    of = machine.get("mallacc", {"entries": 0})
    if not of["entries"] or "unit" not in (of["size_class"], of["pop"], of["push"]):
        return 0  # none, or a study of what would be if steps cost nothing
    return machine.get("support_core", {"cores": 0})["cores"] or machine["cores"]


def _malloc_cache(machine: dict) -> tuple[Array, Array]:
    """What is searched, and what is read then."""
    entries = machine["mallacc"]["entries"]
    cam = arrays.at_least(arrays.CAM, CAM_ENTRY_BYTES * entries)
    return cam, arrays.at_least(arrays.RAM, math.ceil(SRAM_ENTRY_BITS * entries / 8))


def malloc_cache_area(machine: dict, p: Drawn) -> Quantity:
    """Of all of them."""
    cam, sram = _malloc_cache(machine)
    one = p["array.area"] * (cam.area_um2 + sram.area_um2) + p["mallacc.logic"]
    return malloc_caches(machine) * one * UM2


def malloc_cache_energy(results: dict, seconds: float, p: Drawn) -> Quantity:
    """Every instruction searches; what it finds is read or changed, and becomes the most recently used."""
    machine, of = results["machine"], results["mallacc"]
    cam, sram = _malloc_cache(machine)
    pushes = of["pushes"] + of["drops"]
    searches = of["lookups"] + of["updates"] + of["pops"] + pushes + of["prefetches"]
    reads = of["lookups"] + of["pops"] + pushes
    writes = of["updates"] + of["pop_hits"] + pushes + of["reads"]
    uses = of["lookups"] + of["updates"] + of["pops"] + pushes
    pico = p["array.access"] * (
        searches * cam.read_pj + uses * cam.write_pj + reads * sram.read_pj + writes * sram.write_pj
    )
    if machine["mallacc"]["keys"] == "indices":
        pico = pico + (of["lookups"] + of["updates"]) * p["mallacc.index"]
    leaked = malloc_caches(machine) * (cam.leakage_mw + sram.leakage_mw) * MILLI * seconds
    return pico * PICO + p["array.leakage"] * leaked


# --- Memento+ -------------------------------------------------------------------------------------------------------

POINTER_BYTES = 6  # of x86's 48 bits, as Mallacc has them
PAGE_ENTRIES = 32  # Memento


def object_tables(machine: dict) -> int:
    """How many cores have them."""
    return machine["cores"] if machine.get("memento", {"units": 0})["units"] else 0


def _object_tables(machine: dict, p: Drawn) -> tuple[Array, Array, Array | None]:
    """Of a core, with nominal sizes: pointers to objects, headers of arenas, and the page allocator's, if there."""
    of = machine["memento"]
    classes = (of["largest"] + 7) // 8
    pointers = arrays.at_least(arrays.RAM, classes * of["objects"] * POINTER_BYTES)
    headers = arrays.at_least(arrays.RAM, classes * p["memento.header"][0])
    pages = arrays.at_least(arrays.RAM, PAGE_ENTRIES * p["memento.page"][0]) if of["page_allocator"] == "yes" else None
    return pointers, headers, pages


def object_tables_area(machine: dict, p: Drawn) -> Quantity:
    of_a_core = sum(table.area_um2 for table in _object_tables(machine, p) if table)
    return object_tables(machine) * p["array.area"] * of_a_core * UM2


def object_tables_energy(results: dict, seconds: float, p: Drawn) -> Quantity:
    """A malloc reads a pointer and a free writes one; so does each object of a batch; a batch out of an arena reads the
    header and writes it. What batches and headers take in the core's caches is theirs."""
    machine, of = results["machine"], results["memento"]
    pointers, headers, pages = _object_tables(machine, p)
    header_accesses = p["memento.header"] * 8 / headers.port_bits
    read = of["mallocs"] + of["objects_put"]
    written = of["frees"] + of["objects_taken"] + of["objects_made"]
    pico = read * pointers.read_pj + written * pointers.write_pj
    pico = pico + of["batches_made"] * header_accesses * (headers.read_pj + headers.write_pj)
    if pages:
        pico = pico + of["pages"] * (pages.read_pj + pages.write_pj)
    leaked = object_tables(machine) * sum(table.leakage_mw for table in (pointers, headers, pages) if table)
    return p["array.access"] * pico * PICO + p["array.leakage"] * leaked * MILLI * seconds
