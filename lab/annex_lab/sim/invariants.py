"""What must hold in every run with a support core, whatever the program and the allocator."""

# Of data, of calls: a return address, whose line the last level may have given up while the call was served.
MISSES = 0.001


def violations(results: dict) -> list[str]:
    """A line for each that does not hold, of a run that came to its end."""
    if "support_core" not in results or not results["complete"]:
        return []
    whole, parameters = results["support_core"], results["machine"]["support_core"]
    checks = [check for unit in whole["each"] for check in _of_unit(unit, parameters)]
    for number, core in enumerate(results["cores"]):
        checks.append((f"core {number}: its cycles are those of its causes", *_cycles(core)))
    stubs = whole["stubs"]
    if parameters["requests"] != "memory":
        checks.append(("no locked instruction of the allocator's is left on main cores", stubs["atomics"], 0))
    found = [_said(*check) for check in checks if check[1] != check[2]]
    # With the callers' own data the support core works on their stacks, and takes these lines away.
    apart = parameters["requests"] != "memory" and parameters["context"] == "parked"
    if apart and stubs["misses"] > 10 + MISSES * whole["served"]:
        found.append(f"allocator's misses of data on main cores: {stubs['misses']} in {whole['served']} calls")
    return found


def _said(what: str, is_: int, should: int) -> str:
    return f"{what}: {is_} is not {should}"


def _of_unit(unit: dict, parameters: dict) -> list[tuple[str, int, int]]:
    mallocs, frees = unit["malloc_queue"], unit["free_queue"]
    of = f"support core {unit['core']}: "
    parts = unit["asking"] + mallocs["waited"] + unit["reply"] + unit["answering"]
    found = [
        (of + "each captured block is run once", unit["replayed"], unit["steps"]),
        (of + "each request is served", unit["served"], mallocs["requests"] + frees["requests"]),
        (of + "each queued malloc is taken", mallocs["taken"], mallocs["requests"]),
        (of + "each queued free is taken", frees["taken"], frees["requests"]),
        (of + "Little's law of the mallocs", mallocs["area"], mallocs["waited"]),
        (of + "Little's law of the frees", frees["area"], frees["waited"]),
        (of + "a malloc takes its way there, its wait, its service and its way back", unit["asked_to_answered"], parts),
    ]
    if parameters["requests"] != "memory":
        links = parameters["link"] * mallocs["taken"]
        found.append((of + "an answer takes a link", unit["answering"], links))
        if parameters["register_buffer"] and unit["asking"] != links + parameters["registers"]:
            found.append((of + "a request takes a link", unit["asking"], links))
    return found


def _cycles(core: dict) -> tuple[int, int]:
    return core["cycles"], sum(sum(core[who]["cycles"].values()) for who in ("program", "allocator"))
