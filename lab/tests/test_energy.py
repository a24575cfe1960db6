"""Energy and area of simulated runs: sums by hand, what grows with what, intervals, and files that are no results."""

import copy
import json

import numpy
import pytest
from typer.testing import CliRunner

from annex_lab import cli
from annex_lab.sim.energy import arrays, model, parameters

NOMINAL = {name: of.value for name, of in parameters.parameters().items()}
PLAIN = parameters.draw(NOMINAL, draws=0)  # no uncertainty: quantities are of one element
DRAWN = parameters.draw()


# --- results as annex-lab sim writes them, as far as energy reads them ------------------------------------------------


def by(requester: str = "program", **counts) -> dict:
    return {requester: {"load": 0, "store": 0, "fetch": 0, **counts}}


def cache(accesses: dict, misses: dict | None = None, write_backs: int = 0) -> dict:
    return {"accesses": accesses, "misses": misses or by(), "write_backs": {"program": write_backs}}


def kind(of: str = "out-of-order", l2: int = 262144, size: int = 32768, ways: int = 8) -> dict:
    return {
        "core": {"kind": of, "mispredict": 15, "decode": 8},
        "l1i": {"bytes": size, "ways": ways},
        "l1d": {"bytes": size, "ways": ways},
        "l2": {"bytes": l2, "ways": 8},
    }


def core(uops: int = 0, busy: int = 0, mispredictions: int = 0, kernel: int = 0) -> dict:
    of = {
        "uops": uops,
        "mispredictions": mispredictions,
        "indirect_mispredictions": 0,
        "return_mispredictions": 0,
        "cycles": {"page_fault": kernel, "system_call": 0},
    }
    nothing = {name: 0 for name in of} | {"cycles": {"page_fault": 0, "system_call": 0}}
    return {"program": of, "allocator": nothing, "busy_cycles": busy}


def caches(l2: bool = True) -> dict:
    found = {"l1i": cache(by()), "l1d": cache(by()), "coherence": {"transfers": {"program": 0}}}
    return found | ({"l2": cache(by())} if l2 else {})


def results(mains: int = 2, cycles: int = 2_000_000) -> dict:
    """A run in which nothing happens; 1 ms at 2 GHz."""
    dram = {"channels": 1, "ranks": 2}
    return {
        "machine": {
            "name": "a test's",
            "ghz": 2.0,
            "cores": mains,
            "thread_cores": mains,
            **kind(),
            "llc": {"bytes": mains * 2**21, "ways": 16},
            "dram": dram,
        },
        "cycles": cycles,
        "cores": [core() for _ in range(mains)],
        "memory": {
            "cores": [caches() for _ in range(mains)],
            "llc": cache(by()),
            "dram": {"reads": 0, "writes": 0, "row_opens": 0, "row_conflicts": 0},
        },
        "workload": "mstress",
        "allocator": {"name": "jemalloc"},
        "complete": True,
    }


def with_support(of: dict, cores: int = 1, small: bool = True, requests: int = 0, l1: int = 16384, how: str = "queues"):
    of = copy.deepcopy(of)
    one = kind("in-order", l2=0, size=l1, ways=4) if small else kind()
    of["machine"]["kind"] = [{"name": "support_core", "cores": cores, **one}]
    of["machine"]["support_core"] = {"cores": cores, "queue": 128, "requests": how}
    of["cores"] += [core() for _ in range(cores)]
    of["memory"]["cores"] += [caches(l2=not small) for _ in range(cores)]
    of["support_core"] = {"malloc_queue": {"requests": requests}, "free_queue": {"requests": requests}}
    return of


def energy(of: dict, component: str) -> float:
    return model.of(of, PLAIN).energy[component][0]


# --- sums by hand -----------------------------------------------------------------------------------------------------


def test_a_core_is_its_micro_ops_and_its_time():
    of = results(mains=1)
    of["cores"] = [core(uops=1_000_000, busy=1_500_000, mispredictions=1000, kernel=100_000)]
    uops = 1_000_000 + 100_000 * NOMINAL["core.kernel"] + 1000 * 15 * 8 * NOMINAL["core.wrong_path"]
    static = (0.75e-3 + 0.25e-3 * NOMINAL["core.idle"]) * NOMINAL["core.static"] * 1e-3
    assert energy(of, model.MAIN) == pytest.approx(uops * NOMINAL["core.uop"] * 1e-12 + static)


def test_a_small_core_takes_the_papers_share_and_a_big_support_core_all():
    work = core(uops=1_000_000, busy=2_000_000)
    of = results(mains=1)
    of["cores"] = [work]
    main = energy(of, model.MAIN)
    for small, share in ((True, 0.3372), (False, 1.0)):
        other = with_support(results(mains=1), small=small)
        other["cores"][1] = work
        assert energy(other, model.SUPPORT) == pytest.approx(share * main)


def test_private_caches_by_hand():
    of = results(mains=1)
    of["memory"]["cores"] = [
        {
            "l1i": cache(by(fetch=1000), by(fetch=10)),
            "l1d": cache(by(load=3000, store=500), by(load=40), write_backs=7),
            "l2": cache(by(load=50), by(load=20), write_backs=3),
            "coherence": {"transfers": {"program": 2}},
        }
    ]
    l1 = arrays.find("l1", 32768, 8)
    l2 = arrays.find("large", 262144, 8)
    line = 8  # accesses of 64 bits
    expected = (1000 * NOMINAL["core.fetch"] + 3000 + line * 7) * l1.read_pj + (500 + line * (10 + 40)) * l1.write_pj
    expected += (50 + 3 + 2) * l2.read_pj + (20 + 7) * l2.write_pj
    leaked = (2 * l1.leakage_mw + l2.leakage_mw) * 1e-3 * 1e-3
    assert energy(of, model.MAIN_CACHES) == pytest.approx(expected * 1e-12 + leaked)


def test_the_last_level_is_a_slice_for_each_main_core():
    of = results(mains=4)
    of["memory"]["llc"] = cache(by(load=1000), by(load=100), write_backs=50)
    of["memory"]["cores"][1]["l2"]["write_backs"] = {"program": 30}
    piece = arrays.find("large", 2**21, 16)
    dynamic = 1050 * piece.read_pj + 130 * piece.write_pj
    assert energy(of, model.LAST_LEVEL) == pytest.approx(dynamic * 1e-12 + 4 * piece.leakage_mw * 1e-6)


def test_the_interconnect_carries_lines_with_their_requests():
    of = results()
    of["memory"]["llc"] = cache(by(load=1000))
    of["memory"]["cores"][0]["coherence"]["transfers"] = {"program": 200}
    of["memory"]["cores"][1]["l2"] |= {"write_backs": {"program": 30}, "prefetcher": {"issued": 70}}
    edge = sum(model.area(of["machine"], PLAIN).values())[0] ** 0.5
    bits = 1300 * (512 + NOMINAL["wire.request"])
    assert energy(of, model.WIRES) == pytest.approx(
        bits * NOMINAL["wire.energy"] * 1e-15 * NOMINAL["wire.distance"] * edge
    )


def test_a_prefetched_line_is_a_fill():
    fetched, missed = results(), results()
    fetched["memory"]["cores"][0]["l1d"]["prefetcher"] = {"issued": 10}
    missed["memory"]["cores"][0]["l1d"]["misses"] = by(load=10)
    for of in (fetched, missed):
        assert energy(of, model.MAIN_CACHES) - energy(results(), model.MAIN_CACHES) == pytest.approx(
            10 * 8 * arrays.find("l1", 32768, 8).write_pj * 1e-12
        )


def test_memory_by_hand():
    of = results()
    of["memory"]["dram"] = {"reads": 1000, "writes": 500, "row_opens": 10, "row_conflicts": 90}
    nano = 1000 * NOMINAL["dram.read"] + 500 * NOMINAL["dram.write"] + 100 * NOMINAL["dram.activate"]
    nano += 1500 * NOMINAL["dram.transfer"]
    assert energy(of, model.MEMORY) == pytest.approx(nano * 1e-9 + 2 * NOMINAL["dram.background"] * 1e-3)


def test_queues_and_links_by_hand():
    of = with_support(results(), requests=1000)
    queue, registers = arrays.find("ram", 128 * 16), arrays.find("ram", 16 * 64)
    moved = 3000  # requests of mallocs and frees, and the mallocs' answers
    edge = sum(model.area(of["machine"], PLAIN).values())[0] ** 0.5
    wires = moved * 128 * NOMINAL["wire.energy"] * 1e-15 * NOMINAL["wire.distance"] * edge
    tables = moved * (queue.read_pj + queue.write_pj) + 2000 * 4 * registers.read_pj
    leaked = (3 * queue.leakage_mw + registers.leakage_mw) * 1e-6
    assert energy(of, model.QUEUES) == pytest.approx(wires + tables * 1e-12 + leaked)


# --- units of the allocator's -----------------------------------------------------------------------------------------

MALLACC = {"entries": 32, "size_class": "unit", "pop": "unit", "push": "unit", "keys": "indices"}
COUNTED = {"lookups": 9, "updates": 2, "pops": 5, "pop_hits": 4, "pushes": 6, "drops": 1, "prefetches": 3, "reads": 2}


def with_malloc_cache(of: dict, times: int = 1, **settings) -> dict:
    of = copy.deepcopy(of)
    of["machine"]["mallacc"] = MALLACC | settings
    of["mallacc"] = {name: times * count for name, count in COUNTED.items()}
    return of


def test_a_malloc_cache_by_hand():
    cam, sram = arrays.find("cam", 32 * 8), arrays.find("ram", 512)
    expected = (9 + 2 + 5 + 7 + 3) * cam.read_pj + (9 + 2 + 5 + 7) * cam.write_pj
    expected += (9 + 5 + 7) * sram.read_pj + (2 + 4 + 7 + 2) * sram.write_pj + 11 * NOMINAL["mallacc.index"]
    leaked = 2 * (cam.leakage_mw + sram.leakage_mw) * 1e-6
    of = with_malloc_cache(results())
    assert energy(of, model.MALLOC_CACHES) == pytest.approx(expected * 1e-12 + leaked)
    area = cam.area_um2 + sram.area_um2 + NOMINAL["mallacc.logic"]
    assert model.area(of["machine"], PLAIN)[model.MALLOC_CACHES][0] == pytest.approx(2 * area * 1e-6)
    by_size = with_malloc_cache(results(), keys="sizes")
    assert energy(of, model.MALLOC_CACHES) > energy(by_size, model.MALLOC_CACHES)


def test_a_malloc_cache_in_the_support_core_is_counted_there_alone():
    both = model.of(with_malloc_cache(with_support(results())), PLAIN)
    assert model.MALLOC_CACHES not in both.energy and model.MALLOC_CACHES not in both.area
    main = model.of(with_malloc_cache(results()), PLAIN)
    assert both.area[model.SUPPORT_MALLOC_CACHE][0] == pytest.approx(main.area[model.MALLOC_CACHES][0] / 2)
    assert 0 < both.energy[model.SUPPORT_MALLOC_CACHE][0] < main.energy[model.MALLOC_CACHES][0]


@pytest.mark.parametrize(
    "settings", [{"entries": 0}, {"size_class": "free", "pop": "free", "push": "free"}, {"entries": 0, "pop": "free"}]
)
def test_a_study_of_what_costs_nothing_has_no_malloc_cache(settings):
    without, study = model.of(results(), PLAIN), model.of(with_malloc_cache(results(), **settings), PLAIN)
    assert without.energy == study.energy and without.area == study.area


def with_objects(of: dict, pages: str = "no", times: int = 1) -> dict:
    of = copy.deepcopy(of)
    of["machine"]["memento"] = {"units": 1, "largest": 512, "objects": 16, "page_allocator": pages}
    counted = {"mallocs": 90, "frees": 80, "objects_taken": 8, "objects_made": 24, "objects_put": 16}
    counted |= {"batches_made": 3, "pages": 5}
    of["memento"] = {name: times * count for name, count in counted.items()}
    return of


def test_object_tables_by_hand():
    pointers, headers, small = arrays.find("ram", 64 * 16 * 6), arrays.find("ram", 64 * 54), arrays.find("ram", 512)
    expected = (90 + 16) * pointers.read_pj + (80 + 8 + 24) * pointers.write_pj
    expected += 3 * 54 * 8 / 128 * (headers.read_pj + headers.write_pj)
    leaked = 2 * (pointers.leakage_mw + headers.leakage_mw) * 1e-6
    of, pages = with_objects(results()), with_objects(results(), "yes")
    assert energy(of, model.OBJECT_TABLES) == pytest.approx(expected * 1e-12 + leaked)
    assert energy(pages, model.OBJECT_TABLES) - energy(of, model.OBJECT_TABLES) == pytest.approx(
        5 * (small.read_pj + small.write_pj) * 1e-12 + 2 * small.leakage_mw * 1e-6
    )
    areas = [model.area(one["machine"], PLAIN)[model.OBJECT_TABLES][0] for one in (of, pages)]
    assert areas[0] == pytest.approx(2 * (pointers.area_um2 + headers.area_um2) * 1e-6)
    assert areas[1] - areas[0] == pytest.approx(2 * small.area_um2 * 1e-6)


@pytest.mark.parametrize(
    ("add", "component"), [(with_malloc_cache, model.MALLOC_CACHES), (with_objects, model.OBJECT_TABLES)]
)
def test_units_take_more_for_more_calls_and_have_intervals(add, component):
    nothing, once, twice = (energy(add(results(), times=times), component) for times in (0, 1, 2))
    assert twice - nothing == pytest.approx(2 * (once - nothing)) and once > nothing > 0
    used = model.of(add(results()), DRAWN)
    for quantity in (used.energy[component], used.area[component]):
        found = parameters.estimate(quantity)
        assert found.low < found.value < found.high


def test_area_by_hand():
    found = model.area(with_support(results())["machine"], PLAIN)
    assert found[model.MAIN][0] == pytest.approx(2 * NOMINAL["core.area"])
    assert found[model.SUPPORT][0] == pytest.approx(0.2443 * NOMINAL["core.area"])
    assert found[model.SUPPORT_CACHES][0] == pytest.approx(2 * arrays.find("l1", 16384, 4).area_um2 * 1e-6)
    assert found[model.LAST_LEVEL][0] == pytest.approx(2 * arrays.find("large", 2**21, 16).area_um2 * 1e-6)
    tables = 3 * arrays.find("ram", 2048).area_um2 + arrays.find("ram", 1024).area_um2
    assert found[model.QUEUES][0] == pytest.approx(tables * 1e-6)


def test_the_papers_two_power_ratios_do_not_fit_together():
    """16 main cores and a support core are already more than what its share of the chip leaves for all."""
    assert 0.3372 / 0.0225 < 16 + 0.3372
    assert 16 + 0.2443 < 0.2443 / 0.0150 < 16.3  # areas: no room but for 0.04 of a main core


# --- what grows with what ---------------------------------------------------------------------------------------------


def test_each_support_core_is_counted():
    one, four = (with_support(results(), cores=count) for count in (1, 4))
    for component in (model.SUPPORT, model.SUPPORT_CACHES, model.QUEUES):
        assert energy(four, component) == pytest.approx(4 * energy(one, component))
        assert model.area(four["machine"], PLAIN)[component][0] == pytest.approx(
            4 * model.area(one["machine"], PLAIN)[component][0]
        )


def test_a_support_core_that_is_asked_through_memory_has_neither_queues_nor_links():
    asked = with_support(results(), requests=1000, how="memory")
    assert model.QUEUES not in model.of(asked, PLAIN).energy
    signals, queues = (
        energy(with_support(results(), requests=1000, how=how), model.QUEUES) for how in ("signals", "queues")
    )
    assert 0 < signals < queues


def test_energy_follows_counts():
    once, twice = (results(mains=1) for _ in range(2))
    for of, times in ((once, 1), (twice, 2)):
        of["cores"] = [core(uops=times * 1000)]
        of["memory"]["cores"][0]["l1d"] = cache(by(load=times * 1000))
        of["memory"]["llc"] = cache(by(load=times * 1000))
        of["memory"]["dram"]["reads"] = times * 1000
    nothing, first, second = (model.of(of, PLAIN).energy for of in (results(mains=1), once, twice))
    for component in (model.MAIN, model.MAIN_CACHES, model.LAST_LEVEL, model.MEMORY):
        least = nothing[component][0]
        assert second[component][0] - least == pytest.approx(2 * (first[component][0] - least))
        assert first[component][0] > least


def test_a_longer_run_leaks_more():
    short, long = (model.of(results(cycles=cycles), PLAIN).energy for cycles in (2_000_000, 4_000_000))
    for component in short:
        assert long[component][0] == pytest.approx(2 * short[component][0])


@pytest.mark.parametrize(("kind", "sizes"), [("l1", range(10, 18)), ("large", range(16, 26)), ("ram", range(9, 16))])
def test_larger_arrays_take_and_leak_more(kind, sizes):
    found = [arrays.find(kind, 1 << bits, 4) for bits in sizes]
    for of in ("read_pj", "write_pj", "leakage_mw", "area_um2"):
        values = [getattr(array, of) for array in found]
        assert values == sorted(values), of


def test_between_two_sizes_of_the_table():
    smaller, between, larger = (arrays.find("l1", size, 4) for size in (32768, 49152, 65536))
    assert smaller.read_pj < between.read_pj < larger.read_pj
    with pytest.raises(arrays.NoSuchArray, match="1,024 to"):
        arrays.find("l1", 512, 4)


# --- intervals --------------------------------------------------------------------------------------------------------


def worked(uops: int, busy: int) -> dict:
    of = results()
    of["cores"] = [core(uops, busy), core(uops, busy)]
    of["memory"]["dram"]["reads"] = uops // 100
    return of


def test_parameters_have_ranges_around_their_values_and_sources():
    for of in parameters.parameters().values():
        assert 0 < of.low <= of.value <= of.high, of.name
        assert of.status in ("published", "computed", "assumed") and of.source and of.unit, of.name


def test_draws_keep_to_the_range_with_the_value_in_the_middle():
    for name, of in parameters.parameters().items():
        drawn = DRAWN[name]
        assert drawn[0] == of.value
        assert drawn.min() >= 0.999 * of.low and drawn.max() <= 1.001 * of.high
        if of.low < of.value < of.high:
            assert numpy.mean(drawn[1:] < of.value) == pytest.approx(0.5, abs=0.03)


def test_intervals_hold_the_nominal_value():
    used = model.of(with_support(worked(3_000_000, 1_800_000), requests=1000), DRAWN)
    for quantity in (*used.energy.values(), *used.area.values(), used.chip, used.whole):
        found = parameters.estimate(quantity)
        assert found.low < found.value < found.high
        assert found.value == quantity[0]


def test_what_two_runs_share_cancels_in_their_ratio():
    slow, fast = worked(4_000_000, 2_000_000), worked(3_000_000, 1_500_000)
    base, used = (model.of(of, DRAWN) for of in (slow, fast))
    apart = model.of(fast, parameters.draw(seed=2))

    def width(ratio) -> float:
        found = parameters.estimate(ratio)
        return found.high - found.low

    assert width(base.chip / used.chip) < 0.2 * width(base.chip / apart.chip)
    same = parameters.estimate(base.chip / base.chip)
    assert same.low == same.high == 1


def test_a_parameter_that_is_fixed_has_no_range():
    fixed = parameters.draw({"core.idle": 0.5})
    assert set(fixed["core.idle"]) == {0.5}
    assert numpy.array_equal(fixed["core.uop"], DRAWN["core.uop"])


# --- the command ------------------------------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(cli.app, ["energy", *map(str, arguments)])


def written(folder, name: str, of) -> str:
    file = folder / name
    file.write_text(of if isinstance(of, str) else json.dumps(of))
    return str(file)


def test_the_command_says_what_is_saved(tmp_path):
    base = written(tmp_path, "base.json", worked(4_000_000, 2_000_000))
    mine = written(tmp_path, "mine.json", with_support(worked(2_000_000, 1_000_000), requests=1000))
    out = tmp_path / "energy.json"
    done = run(mine, "--against", base, "--json", out)
    assert done.exit_code == 0, done.output
    for what in ("main cores", "support core", "queues, links", "chip and memory", "base / this"):
        assert what in done.output
    document = json.loads(out.read_text())
    (found,) = document["runs"]
    assert found["energy_j"]["chip"]["value"] == pytest.approx(
        sum(of["value"] for name, of in found["energy_j"].items() if name in model.COMPONENTS and name != model.MEMORY)
    )
    assert found["power_w"]["chip"]["value"] == pytest.approx(found["energy_j"]["chip"]["value"] / found["seconds"])
    saving = found["saving"]["chip"]
    assert saving["value"] == pytest.approx(
        document["base"]["energy_j"]["chip"]["value"] / found["energy_j"]["chip"]["value"]
    )
    assert saving["low"] < saving["value"] < saving["high"]


def test_what_each_parameter_leaves_open(tmp_path):
    """Two runs that differ in micro-ops alone: what is static, and what a micro-op takes, are all that matters much."""
    base = written(tmp_path, "base.json", worked(4_000_000, 2_000_000))
    mine = written(tmp_path, "mine.json", worked(2_000_000, 2_000_000))
    done = run(mine, "--against", base, "--by-parameter")
    assert done.exit_code == 0, done.output
    lines = done.output[done.output.index("one parameter alone") :].splitlines()
    assert {line.split()[0] for line in lines[1:3]} == {"core.uop", "core.static"}
    assert "support.power" not in done.output  # there is none


def test_another_program_than_the_bases_is_said(tmp_path):
    other = results() | {"workload": "larson"}
    done = run(written(tmp_path, "a.json", other), "--against", written(tmp_path, "b.json", results()))
    assert done.exit_code == 0 and "another program" in done.output


def test_a_fixed_parameter_counts(tmp_path):
    mine = written(tmp_path, "mine.json", worked(4_000_000, 1_000_000))
    energies = []
    for value in (0.2, 0.6):
        out = tmp_path / "out.json"
        assert run(mine, "--set", f"core.idle={value}", "--json", out).exit_code == 0
        energies.append(json.loads(out.read_text())["runs"][0]["energy_j"][model.MAIN]["value"])
    seconds_idle = 2 * 0.5e-3
    assert energies[1] - energies[0] == pytest.approx(0.4 * seconds_idle * NOMINAL["core.static"] * 1e-3)


LACKING = {name: value for name, value in results().items() if name != "memory"}


@pytest.mark.parametrize(
    ("of", "why"),
    [
        ("not JSON", "not JSON"),
        ("[]", "not the results"),
        ("{}", "not the results"),
        ({"failure": {"why": "no such program"}}, "that run failed"),
        (LACKING, "memory"),
        (results() | {"cores": []}, "not the results"),
        (results() | {"cycles": 0}, "no time"),
    ],
)
def test_what_is_no_result_ends_with_2(tmp_path, of, why):
    done = run(written(tmp_path, "wrong.json", of))
    assert done.exit_code == 2
    assert "wrong.json" in done.output and why in done.output


def test_wrong_settings_and_missing_files_end_with_2(tmp_path):
    mine = written(tmp_path, "mine.json", results())
    for arguments in (["--set", "core.idle"], ["--set", "core.colour=1"], ["--against", tmp_path / "none.json"]):
        assert run(mine, *arguments).exit_code == 2
    assert run(tmp_path / "none.json").exit_code == 2
