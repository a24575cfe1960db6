"""What must hold in every run with a hardware unit, whatever the program and the allocator."""

# Of data, of calls: a return address, whose line the last level may have given up while the call was served.
MISSES = 0.001


def violations(results: dict) -> list[str]:
    """A line for each that does not hold, of a run that came to its end."""
    if not results["complete"]:
        return []
    if "region" in results:  # what is under way at its ends is counted at one of them
        return [_said(*check) for check in _of_cores(results) if check[1] != check[2]]
    units = {"support_core": _with_support_core, "memento": _with_memento, "mallacc": _of_mallacc}
    return [line for name, of_unit in units.items() if name in results for line in of_unit(results)]


def _with_memento(results: dict) -> list[str]:
    (unit,) = results["memento"]["each"]
    checks = [*_memento(unit, results["machine"]["memento"]), *_of_cores(results)]
    calls = sum(function["calls"] for function in results["allocator"]["functions"].values())
    checks.append(("Memento+: each call is somebody's", unit["asked"] + unit["software"] + unit["waited"], calls))
    return [_said(*check) for check in checks if check[1] != check[2]]


def _with_support_core(results: dict) -> list[str]:
    whole, parameters = results["support_core"], results["machine"]["support_core"]
    checks = [check for unit in whole["each"] for check in _of_unit(unit, parameters)]
    checks += _of_cores(results)
    stubs = whole["stubs"]
    if parameters["requests"] != "memory":
        checks.append(("no locked instruction of the allocator's is left on main cores", stubs["atomics"], 0))
    found = [_said(*check) for check in checks if check[1] != check[2]]
    # With the callers' own data the support core works on their stacks, and takes these lines away.
    apart = parameters["requests"] != "memory" and parameters["context"] == "parked"
    if apart and stubs["misses"] > 10 + MISSES * whole["served"]:
        found.append(f"allocator's misses of data on main cores: {stubs['misses']} in {whole['served']} calls")
    return found


def _of_mallacc(results: dict) -> list[str]:
    unit, parameters = results["mallacc"], results["machine"]["mallacc"]
    checks = [
        ("malloc cache: answers that software does not give", unit["wrong_answers"], 0),
        ("malloc cache: steps that were left without an end", unit["steps_without_end"], 0),
    ]
    if parameters["size_class"] == "unit":
        missed = unit["lookups"] - unit["lookup_hits"]
        checks.append(("malloc cache: updates beyond the misses", max(unit["updates"] - missed, 0), 0))
    for number, core in enumerate(results["cores"]):
        checks.append((f"core {number}: its cycles are those of its causes", *_cycles(core)))
    return [_said(*check) for check in checks if check[1] != check[2]]


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


def _memento(unit: dict, parameters: dict) -> list[tuple[str, int, int]]:
    """What its core's object allocators were given and what they gave, and where every object is."""
    where = unit["kept"] + unit["transfer"]["objects"] + unit["live"] + unit["lost"]
    most = parameters["objects"] * -(-parameters["largest"] // 8)
    found = [
        ("Memento+: each object is kept, in the transfer cache or given out", where, unit["objects_made"]),
        (
            "Memento+: what is put and not taken is in the transfer cache",
            unit["objects_put"] - unit["objects_taken"],
            unit["transfer"]["objects"],
        ),
        (
            "Memento+: what is asked for and not given back is given out",
            unit["mallocs"] - unit["frees"],
            unit["live"] + unit["lost"],
        ),
        (
            "Memento+: the transfer cache is locked for each miss",
            unit["transfer"]["locked"],
            unit["mallocs"] - unit["malloc_hits"] + unit["frees"] - unit["free_hits"],
        ),
    ]
    for number, own in enumerate(unit["cores"]):
        of = f"Memento+, core {number}: "
        gained = own["objects_made"] + own["objects_taken"] + own["frees"]
        batches = own["batches_made"] + own["batches_taken"]
        found += [
            (of + "what comes and does not go is kept", gained - own["objects_put"] - own["mallocs"], own["kept"]),
            (of + "it keeps no more than it has room for", max(own["kept"], most), most),
            (of + "a malloc hits or has a batch", own["malloc_hits"] + batches, own["mallocs"]),
            (of + "a free hits or puts a batch", own["free_hits"] + own["batches_put"], own["frees"]),
        ]
    return found


def _of_cores(results: dict) -> list[tuple[str, int, int]]:
    return [
        (f"core {number}: its cycles are those of its causes", *_cycles(core))
        for number, core in enumerate(results["cores"])
    ]


def _cycles(core: dict) -> tuple[int, int]:
    return core["cycles"], sum(sum(core[who]["cycles"].values()) for who in ("program", "allocator"))
