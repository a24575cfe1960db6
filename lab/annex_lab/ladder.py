"""The offload flavour's protocols as a ladder: what each step, with one thing less to wait for, saves, and why.

From a run of `annex-lab bench --allocators ladder --latency`. Each step is set against the shared flavour:
wall time, the program's own CPU time (without the support thread's), CPU time in all. The reasons are the
times of the calls: how long half of malloc's and of free's took at most, and how many took longer than a round trip
between two cores does.
"""

from dataclasses import dataclass
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from annex_lab import machine, report, stats
from annex_lab.allocators import LADDER
from annex_lab.html import palette, svg, text

BASE, *STEPS = LADDER
METRICS = {"score": "time", "own_cpu_s": "the program's own CPU time", "cpu_s": "CPU time in all"}
ROUND_TRIP_NS = 100.0
# Of BASE and the steps, on a light page.
COLOURS = (*(palette.SERIES[number][0] for number in (6, 3, 0)), palette.OURS[0])
SETTINGS = {name: svg.SETTINGS[name] for name in ("svg.fonttype", "svg.hashsalt", "font.family")}


@dataclass(frozen=True)
class Calls:
    """What a call of malloc or of free took."""

    half_ns: float  # half of them at most so long
    tail_ns: float  # p99.9
    waited: float  # share of them that took longer than a round trip


@dataclass(frozen=True)
class Rung:
    program: str
    step: str
    ratios: dict[str, stats.Ratio | None]  # by metric, against BASE
    calls: dict[str, Calls]  # malloc, free


class Incomplete(Exception):
    """Results of which no ladder can be made; the message says what is missing."""


def climb(document: dict) -> list[Rung]:
    """Every program's steps, BASE first; raises Incomplete."""
    samples = stats.Samples(document["results"])
    missing = [name for name in LADDER if name not in samples.allocators]
    if missing:
        raise Incomplete(f"no results of {', '.join(missing)}: annex-lab bench --allocators ladder --latency")
    times = {(one["workload"], one["allocator"], one["call"]): _calls(one) for one in document.get("latencies", [])}
    rungs = []
    for program in samples.programs:
        for step in LADDER:
            calls = {call: times.get((program, step, call)) for call in ("malloc", "free")}
            if not all(calls.values()):
                raise Incomplete(f"no times of {program}'s calls under {step}: annex-lab bench --latency")
            ratios = {metric: samples.ratio(program, step, BASE, metric) for metric in METRICS}
            rungs.append(Rung(program, step, ratios, calls))
    return rungs


def _calls(entry: dict) -> Calls:
    total = sum(count for _, count in entry["histogram"])
    above = sum(count for upper, count in entry["histogram"] if upper > ROUND_TRIP_NS)
    return Calls(entry["p50_ns"], entry["p999_ns"], above / max(1, total))


def as_markdown(document: dict, rungs: list[Rung]) -> str:
    heads = ["program", "step", *METRICS.values()]
    heads += [f"{call}: {what}" for call in ("malloc", "free") for what in ("half within", "p99.9", "over 100 ns")]
    lines = [
        "# The offload flavour's protocols, step by step",
        "",
        "![the table's main columns as bars](ladder.svg)",
        "",
        f"Made by: `{document['options']['command']}`",
        "",
        f"Machine: {machine.in_words(document['machine'])}",
        "",
        f"Against {BASE}, round by round; in brackets the 95 % interval of the noise.",
        "",
        *report.table_head(heads),
    ]
    for rung in rungs:
        cells = [rung.program, rung.step, *(_ratio(rung.ratios[metric]) for metric in METRICS)]
        for call in rung.calls.values():
            cells += [text.nanoseconds(call.half_ns), text.nanoseconds(call.tail_ns), f"{100 * call.waited:.3g} %"]
        lines.append(report.table_row(cells))
    return "\n".join(lines) + "\n"


def _ratio(ratio: stats.Ratio | None) -> str:
    if ratio is None:
        return "-"
    bounds = f" [{ratio.low:.2f}, {ratio.high:.2f}]" if ratio.low is not None else ""
    return f"{ratio.ratio:.2f}{bounds}"


def draw(rungs: list[Rung], file: Path) -> None:
    """Left: time against BASE, right: what half of the calls take at most. One group of bars a program."""
    programs = list(dict.fromkeys(rung.program for rung in rungs))
    figure = Figure(figsize=(10, 1.2 + 0.75 * len(programs)), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    shown = (
        ("time, against the shared flavour", lambda rung: rung.ratios["score"].ratio),
        ("half of malloc's calls within, ns", lambda rung: max(rung.calls["malloc"].half_ns, 1.0)),
        ("half of free's calls within, ns", lambda rung: max(rung.calls["free"].half_ns, 1.0)),
    )
    for axes, (title, value) in zip(panels, shown, strict=True):
        for number, step in enumerate(LADDER):
            at = [row + 0.2 * (number - 1.5) for row in range(len(programs))]
            widths = [value(rung) for rung in rungs if rung.step == step]
            bars = axes.barh(at, widths, 0.18, label=step, color=COLOURS[number])
            axes.bar_label(
                bars, [f"{width:.2f}" if axes is panels[0] else f"{width:.0f}" for width in widths], padding=2
            )
        axes.set_xscale("log")
        axes.margins(x=0.2)
        axes.set_title(title, fontsize=11)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].axvline(1, color="black", linewidth=0.6)
    panels[0].set_yticks(range(len(programs)), programs)
    panels[0].invert_yaxis()
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    with matplotlib.rc_context(SETTINGS):
        figure.savefig(file, metadata={"Date": None})


def write(document: dict, folder: Path) -> list[Path]:
    """ladder.md and ladder.svg; raises Incomplete."""
    rungs = climb(document)
    folder.mkdir(parents=True, exist_ok=True)
    table, picture = folder / "ladder.md", folder / "ladder.svg"
    table.write_text(as_markdown(document, rungs))
    draw(rungs, picture)
    return [table, picture]
