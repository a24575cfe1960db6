"""A server's day in a minute (tools/server_day.c): the resident set over time, and what a request takes."""

import itertools
import statistics
from collections.abc import Iterator
from pathlib import Path

from rich.table import Table

from annex_lab.allocators import Allocator, is_ours
from annex_lab.give_back import results, runs
from annex_lab.give_back.runs import Said
from annex_lab.sample import RunFailed

LIMIT_S = 120  # beside the day itself
POINTS = 300  # of a curve
END = 1 / 12  # of the day, at its end: the mean resident set there is what the quiet time has come to

COLUMNS = {
    "area_mib_s": "MiB x s",
    "peak_mib": "peak, MiB",
    "end_mib": "at the end, MiB",
    "cpu_s": "CPU, s",
    "minor_faults": "page faults",
    "work_p50_us": "p50, us",
    "work_p99_us": "p99, us",
    "work_p9999_us": "p99.99, us",
    "answer_p50_us": "p50 since due, us",
    "answer_p99_us": "p99 since due, us",
    "answer_p9999_us": "p99.99 since due, us",
}


def area_mib_s(resident: list[tuple[float, int]]) -> float:
    """Under the curve of (seconds, KiB), by trapezoids."""
    pairs = itertools.pairwise(resident)
    return sum((later - at) * (before + after) / 2 for (at, before), (later, after) in pairs) / 1024


def curve_kib(resident: list[tuple[float, int]], day_s: float) -> list[int]:
    """The last value seen in each 1/300 of the day, or that before it."""
    values, at = [], 0
    for point in range(1, POINTS + 1):
        while at + 1 < len(resident) and resident[at + 1][0] <= point * day_s / POINTS:
            at += 1
        values.append(resident[at][1])
    return values


def values_of(said: Said, day_s: float) -> dict[str, float]:
    """All numbers of one run; raises RunFailed where it was over before it could be looked at."""
    if not said.resident:
        raise RunFailed("ended before its resident set could be read")
    end = [kib for at, kib in said.resident if day_s * (1 - END) <= at < day_s] or [said.resident[-1][1]]
    return {
        **said.values,
        "area_mib_s": round(area_mib_s(said.resident), 1),
        "end_mib": round(statistics.fmean(end) / 1024, 2),
        "cpu_s": round(said.cpu_s, 3),
        "minor_faults": said.minor_faults,
        "foreign_cpu_s": round(said.foreign_cpu_s, 3),
    }


def measure(document: dict, allocators: list[Allocator]) -> Iterator[str]:
    """Fills the document; yields what comes next, for a person who waits. The allocators take turns."""
    program = runs.compiled("server_day")
    options = document["options"]
    day_s = options["day_s"]
    arguments = (day_s, options["threads"], options["seed"], options["scale"])
    work = None  # the checksum of what was asked of the allocator
    for round_ in range(options["rounds"]):
        turn = round_ % len(allocators)
        for allocator in allocators[turn:] + allocators[:turn]:
            yield allocator.name
            where = {"allocator": allocator.name, "round": round_}
            try:
                said = runs.run(program, arguments, allocator, LIMIT_S + 2 * day_s, sampled=True)
                work = work or said.words.get("checksum")
                if said.words.get("checksum") != work:
                    raise RunFailed("did other work than the run before")
                values = values_of(said, day_s)
            except RunFailed as why:
                document["failures"].append({**where, "why": str(why)})
                continue
            curve = curve_kib(said.resident, day_s)
            document.setdefault("in_use_kib", [round(kib) for kib in said.series.get("in_use_kib", [])])
            document["results"].append({**where, "values": values, "curve_kib": curve})


def rows(document: dict) -> list[tuple[str, list[str]]]:
    """(allocator, a cell for each of COLUMNS)."""
    return [(name, [results.cell(document, name, column) for column in COLUMNS]) for name in document["allocators"]]


def tables(document: dict) -> list[Table]:
    """For the terminal: medians, and in brackets the spread."""
    return [results.as_table("A server's day", COLUMNS.values(), rows(document))]


def curves(document: dict) -> dict[str, list[float]]:
    """MiB at each point of the day: the median of the rounds, of each allocator that has any."""
    found = {}
    for name in document["allocators"]:
        rounds = [row["curve_kib"] for row in document["results"] if row["allocator"] == name]
        if rounds:
            found[name] = [statistics.median(point) / 1024 for point in zip(*rounds, strict=True)]
    return found


def top_mib(found: dict[str, list[float]]) -> float:
    """Where the picture ends: above all curves that stay below twice the middle one's peak."""
    peaks = [max(curve) for curve in found.values()]
    return 1.05 * max(peak for peak in peaks if peak <= 2 * statistics.median(peaks))


def draw(document: dict, file: Path) -> None:
    """All curves in one picture, of the kind that the file's name ends with: .svg or .png."""
    import matplotlib  # takes a second that only a picture is worth
    from matplotlib.figure import Figure

    from annex_lab.html import palette, svg

    kept = {name: svg.SETTINGS[name] for name in ("svg.fonttype", "svg.hashsalt", "font.family", "text.parse_math")}
    day_s = document["options"]["day_s"]
    found = curves(document)
    ours = sorted((name for name in found if is_ours(name)), key=len)  # annex itself gets the solid line
    others = [name for name in found if not is_ours(name)]
    with matplotlib.rc_context(kept):
        picture = Figure(figsize=(10, 5.2), layout="constrained", facecolor="white")
        axes = picture.subplots()
        in_use = [kib / 1024 for kib in document.get("in_use_kib", [])][:POINTS]
        at = [(point + 1) * day_s / POINTS for point in range(POINTS)]
        axes.fill_between(at[: len(in_use)], in_use, color="#e4e6ea", linewidth=0, label="in use")
        top = top_mib(found)
        for name in [*others, *ours]:  # ours last, on top
            label = name if max(found[name]) <= top else f"{name} (up to {max(found[name]):,.0f})"
            if is_ours(name):
                colour, dash = "ours", ("solid", "dashed", "dotted", "dashdot")[ours.index(name) % 4]
            else:
                colour, dash = palette.line(others.index(name))
            width = 1.8 if is_ours(name) else 1.3
            axes.plot(at, found[name], color=palette.ON_PAPER[colour], linestyle=dash, linewidth=width, label=label)
        axes.set_xlim(0, day_s)
        axes.set_ylim(0, top)
        axes.set_xlabel("seconds")
        axes.set_ylabel("resident, MiB")
        axes.grid(axis="y", color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        picture.legend(*axes.get_legend_handles_labels(), loc="outside right upper", frameon=False)
        file.parent.mkdir(parents=True, exist_ok=True)
        picture.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)
