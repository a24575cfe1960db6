"""What a simulated run found out, for people."""

import signal

from rich.console import Console
from rich.table import Table

CAUSES = {
    "base": "core: dependencies, ports, width",
    "l1": "L1 and store forwarding",
    "l2": "L2",
    "llc": "last-level cache",
    "dram": "memory",
    "coherence": "other cores' caches",
    "tlb": "page walks",
    "fetch": "instruction fetch",
    "branch": "wrong predictions",
    "atomic": "locked instructions, fences",
    "page_fault": "page faults",
    "system_call": "system calls",
    "unit": "waiting for the unit that runs calls",
    "idle": "idle",
}


def _per_cent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def table_of(*headings: str, gap: int = 2) -> Table:
    """Without lines: names at the left, numbers at the right."""
    made = Table(box=None, padding=(0, gap, 0, 0), header_style="bold")
    for i, heading in enumerate(headings):
        made.add_column(heading, justify="left" if i == 0 else "right")
    return made


def _where(results: dict) -> Table:
    program, allocator = (results["all"][who]["cycles"] for who in ("program", "allocator"))
    worked = results["busy_cycles"]
    table = table_of("where the cycles went", "program", "allocator", "of all")
    for cause, what in CAUSES.items():
        both = program[cause] + allocator[cause]
        if both == 0 or cause == "idle":
            continue
        table.add_row(what, f"{program[cause]:,}", f"{allocator[cause]:,}", _per_cent(both, worked))
    return table


def _cores(results: dict) -> Table:
    table = table_of("core", "instructions", "cycles", "idle", "IPC")
    for number, core in enumerate(results["cores"]):
        if core["instructions"]:
            idle = core["cycles"] - core["busy_cycles"]
            table.add_row(
                str(number), f"{core['instructions']:,}", f"{core['cycles']:,}", f"{idle:,}", f"{core['ipc']:.2f}"
            )
    return table


def _allocator(results: dict) -> Table:
    found, worked = results["allocator"], results["busy_cycles"]
    functions = found["functions"]
    table = table_of("the allocator's share", "", "")
    counts, each = _calls(functions)
    table.add_row("calls: malloc, free, realloc", counts, "" if {"support_core", "memento"} & results.keys() else each)
    table.add_row(
        "instructions", f"{found['instructions']:,}", _per_cent(found["instructions"], results["instructions"])
    )
    table.add_row("cycles", f"{found['cycles']:,}", _per_cent(found["cycles"], worked))
    table.add_row("  in locked instructions", f"{found['atomic_cycles']:,}", _per_cent(found["atomic_cycles"], worked))
    lost = found["l2_miss_stalls"]
    table.add_row("cycles lost to L2 misses inside it", f"{lost['inside']:,}", _per_cent(lost["inside"], worked))
    outside = lost["evicted"] + lost["touched"] + lost["evicted_and_touched"]
    table.add_row("  outside, on lines it evicted or used", f"{outside:,}", _per_cent(outside, worked))
    return table


def _support_core(results: dict) -> Table:
    unit = results["support_core"]
    cores = results["cores"][unit["core"] :][: len(unit["each"])]
    mains = results["cores"][: results["machine"]["thread_cores"]]
    served = max(unit["served"], 1)
    answered = max(unit["malloc_queue"]["taken"], 1)
    table = table_of("the support core" if len(cores) == 1 else f"the {len(cores)} support cores", "", "")
    table.add_row("calls run there", f"{unit['served']:,}", f"{unit['service'] / served:.1f} cycles each")
    kept = unit["at_their_own_cores"]
    reasons = ", ".join(f"{count:,} {why.replace('_', ' ')}" for why, count in kept.items() if count)
    table.add_row("calls at their own cores", f"{sum(kept.values()):,}", reasons)
    busy = sum(core["busy_cycles"] for core in cores)
    table.add_row("busy", f"{busy:,}", _per_cent(busy, results["cycles"] * len(cores)))
    ways, waits = unit["asking"] + unit["answering"], unit["malloc_queue"]["waited"]
    table.add_row(
        "malloc to pointer",
        f"{unit['asked_to_answered'] / answered:.1f} cycles",
        f"{ways / answered:.1f} there and back, {waits / answered:.1f} queue, {unit['reply'] / answered:.1f} service",
    )
    waiting = sum(of["cycles"]["unit"] for main in mains for of in (main["program"], main["allocator"]))
    table.add_row(
        "main cores waited for it", f"{waiting:,}", _per_cent(waiting, sum(main["busy_cycles"] for main in mains))
    )
    for name, queue in (("mallocs", unit["malloc_queue"]), ("frees", unit["free_queue"])):
        table.add_row(
            f"{name} waiting, mean, most",
            f"{queue['area'] / max(results['cycles'], 1):.2f}, {queue['most']:,}",
            f"{queue['overflowed']:,} in memory",
        )
    atomics = sum(main["allocator"]["atomics"] for main in mains)
    table.add_row("locked instr. on main cores", f"{atomics:,}", "")
    return table


def _memento(results: dict) -> Table:
    unit, transfer = results["memento"], results["memento"]["transfer"]
    table = table_of("Memento+", "", "")
    reasons = f"{unit['software']:,} left to software, {unit['waited']:,} waited"
    table.add_row("calls served", f"{unit['asked']:,}", reasons)
    for what, batches in (("mallocs", "batches_taken"), ("frees", "batches_put")):
        hits = unit[f"{what[:-1]}_hits"]
        table.add_row(
            f"{what} that hit", _per_cent(hits, unit[what]), f"{unit[batches]:,} batches of the transfer cache's"
        )
    made = f"{unit['objects_made']:,} in {unit['arenas']:,} arenas"
    where = f"{unit['live']:,} given out, {unit['kept']:,} kept, {transfer['objects']:,} in the transfer cache"
    table.add_row("objects made", made, where)
    misses = max(unit["mallocs"] - unit["malloc_hits"], 1)
    table.add_row(
        "a miss",
        f"{unit['fetching'] / misses:.1f} cycles",
        f"{transfer['waits']:,} of {transfer['locked']:,} locks waited for, {transfer['waited']:,} cycles",
    )
    if results["machine"]["memento"]["page_allocator"] == "yes":
        table.add_row("pages from the page allocator", f"{unit['pages']:,}", "")
    return table


def _mallacc(results: dict) -> Table:
    unit = results["mallacc"]
    table = table_of("the malloc cache", "", "")
    for name, all_, hits in (
        ("size classes looked up", "lookups", "lookup_hits"),
        ("blocks popped", "pops", "pop_hits"),
    ):
        table.add_row(name, f"{unit[all_]:,}", f"{_per_cent(unit[hits], unit[all_])} hits")
    table.add_row("blocks pushed", f"{unit['pushes']:,}", f"{unit['drops']:,} lists changed otherwise")
    table.add_row("prefetches that read", f"{unit['reads']:,}", f"{unit['blocked_cycles']:,} cycles blocked")
    table.add_row(
        "size classes met", f"{unit['classes']:,}", f"{unit['evictions']:,} evictions, {unit['flushes']:,} flushes"
    )
    table.add_row("steps that took no time", f"{unit['left_out']:,}", "")
    return table


def _calls(functions: dict) -> tuple[str, str]:
    counts = [functions[name]["calls"] for name in ("allocate", "free", "reallocate")]
    calls = sum(function["calls"] for function in functions.values())
    cycles = sum(function["cycles"] for function in functions.values())
    return ", ".join(f"{count:,}" for count in counts), f"{cycles / calls:.0f} cycles each" if calls else "-"


def _ending(ended: str) -> str:
    if ended.startswith("signal "):
        return f"the program was ended by {signal.Signals(int(ended.split()[1])).name}"
    return ENDINGS.get(ended, ended)


def _left_out(region: dict, results: dict) -> str:
    left, many = region["instructions_left_out"], region["regions"]
    what = "The region of interest alone" if many == 1 else f"{many:,} regions of interest alone"
    share = _per_cent(results["instructions"], results["instructions"] + left["before"] + left["after"])
    return (
        f"{what}, {share} of the instructions: {left['before']:,} before and {left['after']:,} after are in no number "
        "but the peak."
    )


def show(console: Console, results: dict) -> None:
    machine = results["machine"]
    cycles, worked = results["cycles"], results["busy_cycles"]
    seconds = cycles / machine["ghz"] / 1e9
    console.print(
        f"[bold]{machine['name']}[/]: {results['instructions']:,} instructions in {cycles:,} cycles "
        f"({seconds:.4f} s at {machine['ghz']} GHz), IPC {results['instructions'] / max(worked, 1):.2f}, "
        f"{results['threads']} thread{'s' if results['threads'] > 1 else ''}"
    )
    if not results["complete"]:
        console.print(f"[yellow]Not the whole run: {_ending(results['ended'])}[/]")
    if region := results.get("region"):
        console.print(_left_out(region, results))
    if forks := results["system_calls"]["forks"]:
        console.print(f"[yellow]{forks} forked process{'es' if forks > 1 else ''} ran on, not simulated.[/]")
    console.print()
    console.print(_where(results))
    console.print()
    if len(results["cores"]) > 1:
        console.print(_cores(results))
        console.print()
    if results["allocator"]["calls"]:
        console.print(_allocator(results))
        console.print()
    if "support_core" in results:
        console.print(_support_core(results))
        console.print()
    if "memento" in results:
        console.print(_memento(results))
        console.print()
    if "mallacc" in results:
        console.print(_mallacc(results))
        console.print()
    pages = results["memory"]["pages"]
    peak, average = (pages[name] / 2**20 for name in ("peak_resident", "average_resident"))
    console.print(
        f"footprint: peak {peak:.1f} MiB, average {average:.1f} MiB; "
        f"simulated in {results['host_s']:.1f} s ({results['mips']:.0f} million instructions a second)"
    )


ENDINGS = {
    "not yet": "it ended without a word",
    "exec": "the program replaced itself by another one, which is not simulated",
    "hang": "no instruction was run for so long that it was given up",
    "stopped": "it was stopped",
}
