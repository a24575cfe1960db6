"""Energy and area of one run: what its statistics count, times the parameters.

Every quantity is drawn (parameters.py): formulas here are of the nominal values and of all draws at once. Energy is in
joules, power in watts, area in mm2.
"""

from dataclasses import dataclass, field

from annex_lab.sim.energy import arrays, units
from annex_lab.sim.energy.parameters import Drawn, Quantity

PICO, NANO, MILLI = 1e-12, 1e-9, 1e-3
UM2 = 1e-6  # mm2
WORD_BITS = 64

MAIN, MAIN_CACHES = "main cores", "their caches"
SUPPORT, SUPPORT_CACHES = "support core", "its caches"
QUEUES = "queues, links"
MALLOC_CACHES, SUPPORT_MALLOC_CACHE = "malloc caches", "its malloc cache"  # of main cores; of the support core
OBJECT_TABLES = "object tables"  # Memento+'s
LAST_LEVEL, WIRES, CONTROLLER = "last-level cache", "interconnect", "memory controller"
MEMORY = "memory"
COMPONENTS = (
    *(MAIN, MAIN_CACHES, MALLOC_CACHES, OBJECT_TABLES),
    *(SUPPORT, SUPPORT_CACHES, SUPPORT_MALLOC_CACHE, QUEUES),
    *(LAST_LEVEL, WIRES, CONTROLLER, MEMORY),
)


class NoResult(Exception):
    """What of a results file is missing or wrong."""


@dataclass(frozen=True)
class Used:
    """By component, in the order of COMPONENTS; without those that the machine lacks."""

    seconds: float
    energy: dict[str, Quantity]
    area: dict[str, Quantity] = field(default_factory=dict)

    @property
    def chip(self) -> Quantity:
        """The paper's: all but the memory."""
        return sum(of for name, of in self.energy.items() if name != MEMORY)

    @property
    def whole(self) -> Quantity:
        return sum(self.energy.values())

    @property
    def chip_area(self) -> Quantity:
        return sum(self.area.values())


def total(counts: dict | int) -> int:
    """Of what is counted by requester, and there by access."""
    return counts if isinstance(counts, int) else sum(total(part) for part in counts.values())


def _accesses(cache: dict, *kinds: str) -> int:
    return sum(by_kind[kind] for by_kind in cache["accesses"].values() for kind in kinds)


def _fills(cache: dict) -> int:
    return total(cache["misses"]) + cache.get("prefetcher", {}).get("issued", 0)


# --- cores ----------------------------------------------------------------------------------------------------------


def core_kinds(machine: dict) -> list[dict]:
    """The parameters of each core, in the order of the results' cores: main ones, then each other kind."""
    others = [kind for kind in machine.get("kind", []) for _ in range(kind["cores"])]
    return [machine] * machine["cores"] + others


def is_small(kind: dict) -> bool:
    return kind["core"]["kind"] == "in-order"


def _core(results: dict, core: dict, kind: dict, p: Drawn) -> Quantity:
    """Without its caches. A small core is a share of a main one in the energy of a micro-op and in static power."""
    uops = wrong = kernel = 0
    for of in (core["program"], core["allocator"]):
        uops += of["uops"]
        wrong += of["mispredictions"] + of["indirect_mispredictions"] + of["return_mispredictions"]
        kernel += of["cycles"]["page_fault"] + of["cycles"]["system_call"]
    slots = wrong * kind["core"]["mispredict"] * kind["core"]["decode"]
    run = uops + p["core.kernel"] * kernel + p["core.wrong_path"] * slots
    busy = core["busy_cycles"]
    idle = results["cycles"] - busy
    at_work = (busy + p["core.idle"] * idle) / (results["machine"]["ghz"] * 1e9)  # seconds
    share = p["support.power"] if is_small(kind) else 1
    return p["core.model"] * share * (run * p["core.uop"] * PICO + at_work * p["core.static"] * MILLI)


# --- caches ---------------------------------------------------------------------------------------------------------


def _array(kind: str, of: dict) -> arrays.Array:
    return arrays.find(kind, of["bytes"], of["ways"])


def _leaked(array: arrays.Array, seconds: float, p: Drawn) -> Quantity:
    return p["array.leakage"] * (array.leakage_mw * MILLI * seconds)


def _private(results: dict, caches: dict, kind: dict, p: Drawn) -> Quantity:
    """A core's L1s and L2. A line is as many accesses as the port is narrower."""
    seconds = results["cycles"] / (results["machine"]["ghz"] * 1e9)
    l1i, l1d = (_array(arrays.L1, kind[name]) for name in ("l1i", "l1d"))
    pico = p["core.fetch"] * (_accesses(caches["l1i"], "fetch") * l1i.read_pj)
    pico = pico + _fills(caches["l1i"]) * l1i.write_pj * l1i.ports_a_line
    pico = pico + _accesses(caches["l1d"], "load") * l1d.read_pj + _accesses(caches["l1d"], "store") * l1d.write_pj
    pico = pico + _fills(caches["l1d"]) * l1d.write_pj * l1d.ports_a_line
    pico = pico + total(caches["l1d"]["write_backs"]) * l1d.read_pj * l1d.ports_a_line
    leaked = _leaked(l1i, seconds, p) + _leaked(l1d, seconds, p)
    taken = total(caches["coherence"]["transfers"])  # read where the line was, which is taken for a cache like this one
    if kind["l2"]["bytes"]:
        l2 = _array(arrays.LARGE, kind["l2"])
        written = _fills(caches["l2"]) + total(caches["l1d"]["write_backs"])
        read = total(caches["l2"]["accesses"]) + total(caches["l2"]["write_backs"]) + taken
        pico = pico + read * l2.read_pj + written * l2.write_pj
        leaked = leaked + _leaked(l2, seconds, p)
    else:
        pico = pico + taken * l1d.read_pj * l1d.ports_a_line
    return p["array.access"] * pico * PICO + leaked


def _slices(machine: dict) -> tuple[int, arrays.Array]:
    """The last level is a slice for each main core."""
    count = machine["cores"]
    return count, arrays.find(arrays.LARGE, machine["llc"]["bytes"] // count, machine["llc"]["ways"])


def _written_to_last_level(results: dict) -> int:
    return sum(total(of.get("l2", of["l1d"])["write_backs"]) for of in results["memory"]["cores"])


def _read_from_last_level(results: dict) -> int:
    ahead = (of.get("l2", of["l1d"]).get("prefetcher", {}).get("issued", 0) for of in results["memory"]["cores"])
    return total(results["memory"]["llc"]["accesses"]) + sum(ahead)


def _last_level(results: dict, seconds: float, p: Drawn) -> Quantity:
    cache = results["memory"]["llc"]
    count, piece = _slices(results["machine"])
    read = _read_from_last_level(results) + total(cache["write_backs"])
    written = _fills(cache) + _written_to_last_level(results)
    dynamic = (read * piece.read_pj + written * piece.write_pj) * PICO
    return p["array.access"] * dynamic + count * _leaked(piece, seconds, p)


# --- between them ---------------------------------------------------------------------------------------------------


def _a_bit(area: Quantity, p: Drawn) -> Quantity:
    """Joules to bring a bit from one place of the chip to another."""
    return p["wire.energy"] * 1e-15 * p["wire.distance"] * area**0.5


def _wires(results: dict, area: Quantity, p: Drawn) -> Quantity:
    lines = _read_from_last_level(results) + _written_to_last_level(results)
    lines += sum(total(of["coherence"]["transfers"]) for of in results["memory"]["cores"])
    return lines * (arrays.LINE_BITS + p["wire.request"]) * _a_bit(area, p)


def _queues(machine: dict, p: Drawn) -> list[arrays.Array]:
    """Of one support core, with nominal sizes: two queues of requests, one of responses, and the register buffer."""
    if machine["support_core"]["requests"] != "queues":
        return []
    entries = machine["support_core"]["queue"]
    queue = arrays.at_least(arrays.RAM, entries * p["queue.entry"][0])
    registers = arrays.at_least(arrays.RAM, p["queue.registers"][0] * p["queue.register_set"][0])
    return [queue, queue, queue, registers]


def _queues_and_links(results: dict, seconds: float, area: Quantity, p: Drawn) -> Quantity:
    machine, unit = results["machine"], results["support_core"]
    if machine["support_core"]["requests"] == "memory":
        return 0 * area  # what it has instead is in the caches
    answers = unit["malloc_queue"]["requests"]
    requests = answers + unit["free_queue"]["requests"]
    bits = p["queue.entry"] * 8
    energy = (requests + answers) * bits * _a_bit(area, p)
    if found := _queues(machine, p):
        queue, registers = found[0], found[-1]
        entry = bits / queue.port_bits * (queue.write_pj + queue.read_pj)
        register_set = p["queue.register_set"] * 8 / registers.port_bits * registers.read_pj
        energy = energy + p["array.access"] * ((requests + answers) * entry + requests * register_set) * PICO
        energy = energy + machine["support_core"]["cores"] * sum(_leaked(one, seconds, p) for one in found)
    return energy


def _memory(results: dict, seconds: float, p: Drawn) -> Quantity:
    of, dram = results["memory"]["dram"], results["machine"]["dram"]
    opened = of["row_opens"] + of["row_conflicts"]
    nano = of["reads"] * p["dram.read"] + of["writes"] * p["dram.write"] + opened * p["dram.activate"]
    nano = nano + (of["reads"] + of["writes"]) * p["dram.transfer"]
    return nano * NANO + dram["channels"] * dram["ranks"] * seconds * p["dram.background"]


# --- all ------------------------------------------------------------------------------------------------------------


def _caches_area(kind: dict, p: Drawn) -> Quantity:
    found = [_array(arrays.L1, kind["l1i"]), _array(arrays.L1, kind["l1d"])]
    if kind["l2"]["bytes"]:
        found.append(_array(arrays.LARGE, kind["l2"]))
    return p["array.area"] * (sum(array.area_um2 for array in found) * UM2)


def core_area(kind: dict, p: Drawn) -> Quantity:
    """Of a main core of that kind with its L1s and its L2."""
    return p["core.area"] + _caches_area(kind, p)


def _support(machine: dict) -> list[bool]:
    """Of each core: whether it is there to run others' calls. Those that run threads come first."""
    threads = machine.get("thread_cores", machine["cores"])
    return [i >= threads for i in range(len(core_kinds(machine)))]


def _holder(machine: dict) -> str:
    """Where malloc caches are: in the cores that run the allocator."""
    return SUPPORT_MALLOC_CACHE if machine.get("support_core", {"cores": 0})["cores"] else MALLOC_CACHES


def area(machine: dict, p: Drawn) -> dict[str, Quantity]:
    """By component, of the chip."""
    zero = 0 * p["core.area"]
    found = dict.fromkeys(COMPONENTS[:-1], zero)
    for kind, support in zip(core_kinds(machine), _support(machine), strict=True):
        share = p["support.area"] if is_small(kind) else 1
        found[SUPPORT if support else MAIN] = found[SUPPORT if support else MAIN] + share * p["core.area"]
        caches = SUPPORT_CACHES if support else MAIN_CACHES
        found[caches] = found[caches] + _caches_area(kind, p)
    if units.malloc_caches(machine):
        found[_holder(machine)] = units.malloc_cache_area(machine, p)
    if units.object_tables(machine):
        found[OBJECT_TABLES] = units.object_tables_area(machine, p)
    if count := machine.get("support_core", {"cores": 0})["cores"]:
        found[QUEUES] = p["array.area"] * (count * sum(one.area_um2 for one in _queues(machine, p)) * UM2)
    count, piece = _slices(machine)
    found[LAST_LEVEL] = p["array.area"] * (count * piece.area_um2 * UM2)
    found[CONTROLLER] = machine["dram"]["channels"] * p["controller.area"]
    return {name: of for name, of in found.items() if of[0]}


def of(results: dict, p: Drawn) -> Used:
    """Raises NoResult where the statistics are not those of a run, NoSuchArray where a cache is of no size that the
    tables have."""
    try:
        return _of(results, p)
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as why:
        raise NoResult(f"not the results of annex-lab sim ({type(why).__name__}: {why})") from None


def _of(results: dict, p: Drawn) -> Used:
    machine = results["machine"]
    if results["cycles"] <= 0:
        raise ValueError("it took no time")
    seconds = results["cycles"] / (machine["ghz"] * 1e9)
    spaces = area(machine, p)
    whole = sum(spaces.values())
    energy = dict.fromkeys(COMPONENTS, 0 * p["core.uop"])
    every = zip(results["cores"], results["memory"]["cores"], core_kinds(machine), _support(machine), strict=True)
    for core, caches, kind, support in every:
        here, there = (SUPPORT, SUPPORT_CACHES) if support else (MAIN, MAIN_CACHES)
        energy[here] = energy[here] + _core(results, core, kind, p)
        energy[there] = energy[there] + _private(results, caches, kind, p)
    if machine.get("support_core", {"cores": 0})["cores"]:
        energy[QUEUES] = _queues_and_links(results, seconds, whole, p)
    if units.malloc_caches(machine):
        energy[_holder(machine)] = units.malloc_cache_energy(results, seconds, p)
    if units.object_tables(machine):
        energy[OBJECT_TABLES] = units.object_tables_energy(results, seconds, p)
    energy[LAST_LEVEL] = _last_level(results, seconds, p)
    energy[WIRES] = _wires(results, whole, p)
    energy[CONTROLLER] = machine["dram"]["channels"] * seconds * p["controller.static"] * MILLI
    energy[MEMORY] = _memory(results, seconds, p)
    return Used(seconds, {name: of for name, of in energy.items() if of[0]}, spaces)
