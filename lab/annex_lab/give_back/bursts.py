"""A server that has nothing to do but for bursts (tools/bursts.c): what giving back between them costs and saves."""

from collections.abc import Iterator

from rich.table import Table

from annex_lab.allocators import Allocator
from annex_lab.give_back import results, runs
from annex_lab.give_back.day import area_mib_s
from annex_lab.give_back.runs import Said
from annex_lab.sample import RunFailed

LIMIT_S = 60  # beside the bursts themselves
PERIODS_S = (1.0, 10.0, 60.0)
MEASURED_S = 60  # of each period: as many bursts as there are in it, of those limits
FEWEST, MOST = 2, 20
DAY_S = 86400

DEFAULT = ("annex", runs.NEVER_PURGING, runs.JEMALLOC_BACKGROUND)

COLUMNS = {
    "mean_mib": "resident, MiB",
    "request_p50_us": "request: p50, us",
    "request_p99_us": "p99, us",
    "request_p9999_us": "p99.99, us",
    "burst_p50_ms": "burst: p50, ms",
    "cpu_ms": "CPU time a burst, ms",
    "cpu_day_s": "CPU time a day, s",
    "faults": "page faults a burst",
}


def bursts_in(period_s: float) -> int:
    """How many are measured; one more comes before them."""
    return min(max(round(MEASURED_S / period_s), FEWEST), MOST)


def values_of(said: Said, period_s: float, bursts: int) -> dict[str, float]:
    """All numbers of one run; raises RunFailed where it was over before it could be looked at."""
    if len(said.resident) < 2:
        raise RunFailed("ended before its resident set could be read")
    taken_s = said.resident[-1][0] - said.resident[0][0]
    return {
        **{name: value for name, value in said.values.items() if name.startswith("request_")},
        "burst_p50_ms": said.values["burst_p50_us"] / 1e3,
        "mean_mib": round(area_mib_s(said.resident) / taken_s, 2),
        "cpu_ms": round(said.cpu_s / (bursts + 1) * 1e3, 2),
        "cpu_day_s": round(said.cpu_s / (bursts + 1) * DAY_S / period_s, 1),
        "faults": round(said.minor_faults / (bursts + 1)),
        "foreign_cpu_s": round(said.foreign_cpu_s, 3),
    }


def measure(document: dict, allocators: list[Allocator]) -> Iterator[str]:
    """Fills the document; yields what comes next, for a person who waits. The allocators take turns."""
    program = runs.compiled("bursts")
    options = document["options"]
    work: dict[float, str | None] = {}  # the checksum of what was asked of the allocator
    for round_ in range(options["rounds"]):
        turn = round_ % len(allocators)
        for period_s in options["periods_s"]:
            bursts = bursts_in(period_s)
            arguments = (period_s, bursts, options["threads"], options["seed"], options["scale"])
            for allocator in allocators[turn:] + allocators[:turn]:
                yield f"{allocator.name}, each {period_s:g} s"
                where = {"allocator": allocator.name, "mode": mode(period_s), "round": round_}
                try:
                    limit_s = LIMIT_S + 2 * period_s * (bursts + 1)
                    said = runs.run(program, arguments, allocator, limit_s, sampled=True)
                    if said.words.get("checksum") != work.setdefault(period_s, said.words.get("checksum")):
                        raise RunFailed("did other work than the run before")
                    values = values_of(said, period_s, bursts)
                except RunFailed as why:
                    document["failures"].append({**where, "why": str(why)})
                    continue
                document["results"].append({**where, "values": values})


def mode(period_s: float) -> str:
    """The name of a period's rows."""
    return f"each {period_s:g} s"


def rows(document: dict) -> list[tuple[str, list[str]]]:
    """(period and allocator, a cell for each of COLUMNS)."""
    modes = [mode(period_s) for period_s in document["options"]["periods_s"]]
    return [
        (f"{of}: {name}", [results.cell(document, name, column, of) for column in COLUMNS])
        for of in modes
        for name in document["allocators"]
    ]


def tables(document: dict) -> list[Table]:
    """For the terminal: medians, and in brackets the spread."""
    return [results.as_table("A server with bursts", COLUMNS.values(), rows(document))]
