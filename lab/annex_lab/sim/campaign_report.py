"""A campaign of simulated runs as people read it: campaign.md and campaign.svg; and campaign.json, all its numbers."""

import json
import statistics
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from annex_lab import stats
from annex_lab.report import table_head, table_row
from annex_lab.sim.campaign import (
    AUTO,
    FORMAT,
    TABLE_BASE,
    Campaign,
    Mean,
    Panel,
    Run,
    count_of,
    mean_of,
    ordered,
    panels,
)


def draw(panels: list[Panel], file: Path) -> None:
    from matplotlib import rc_context  # takes a second that only a report is worth
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

    from annex_lab.allocators import is_ours
    from annex_lab.html import palette, svg

    with rc_context(
        {name: svg.SETTINGS[name] for name in ("svg.fonttype", "svg.hashsalt", "font.family", "text.parse_math")}
    ):
        figure = Figure(figsize=(6.4 * len(panels) + 1.6, 4.2), layout="constrained")
        axes_of = figure.subplots(1, len(panels), squeeze=False)[0]
        names = ordered(name for panel in panels for name in panel.speedups)
        others = [name for name in names if not is_ours(name)]
        ours = [name for name in names if is_ours(name)]
        for axes, panel in zip(axes_of, panels, strict=True):
            counts = sorted({count for means in panel.speedups.values() for count in means})
            for name, means in panel.speedups.items():
                if name in ours:
                    colour, dash = palette.OURS[0], palette.DASHES[ours.index(name) % len(palette.DASHES)]
                else:
                    series, dash = palette.line(others.index(name))
                    colour = palette.SERIES[int(series[1:])][0]
                at = sorted(means)
                middle = [means[count].mean for count in at]
                errors = [
                    [means[count].mean - means[count].low for count in at],
                    [means[count].high - means[count].mean for count in at],
                ]
                axes.errorbar(
                    at, middle, errors if any(mean.spread for mean in means.values()) else None,
                    label=name, color=colour, linestyle=dash, marker="o", markersize=4.5, linewidth=1.8, capsize=3,
                )  # fmt: skip
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_locator(FixedLocator(counts))
            axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:.0f}"))
            axes.set_xlabel("threads")
            axes.set_ylabel(f"speedup over {panel.base}")
            where = "a core for each thread" if panel.machine == AUTO else panel.machine
            axes.set_title(f"{where}: geometric mean of {count_of(len(panel.workloads), 'workload')}", fontsize=11)
            axes.grid(axis="y", color="#dddddd", linewidth=0.6)
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
        handles, labels = [], []
        for axes in axes_of:
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                if label not in labels:
                    handles.append(handle)
                    labels.append(label)
        figure.legend(handles, labels, loc="outside right upper", frameon=False)
        figure.savefig(file, format="svg", metadata={"Date": None})


def _ratio_cell(found: Mean | None, several: bool) -> str:
    if found is None:
        return "-"
    return f"{found.mean:.3f}" + (f" ({100 * found.spread:.1f} %)" if several else "")


class _Tables:
    def __init__(self, campaign: Campaign):
        self.campaign = campaign
        self.base = campaign.base(TABLE_BASE)
        self.several = len(campaign.seeds) > 1
        self.failed = {(one.workload, one.allocator, one.machine, one.threads) for one in campaign.failures}

    def _nothing(self, workload: str, allocator: str, place: tuple[str, int]) -> str:
        return "failed" if (workload, allocator, *place) in self.failed else "-"

    def ratios(self, place: tuple[str, int], metric: str) -> list[str]:
        """One row a workload, and their geometric mean: of those that the allocator and the base both have."""
        campaign = self.campaign
        lines = table_head(["", *campaign.allocators])
        columns: dict[str, list[dict[int, float]]] = {name: [] for name in campaign.allocators}
        workloads = campaign.workloads_at(place)
        for workload in workloads:
            cells = []
            for name in campaign.allocators:
                ratios = campaign.ratios(workload, name, self.base, place, metric)
                if ratios:
                    columns[name].append(ratios)
                cells.append(
                    _ratio_cell(mean_of(ratios.values()), self.several)
                    if ratios
                    else self._nothing(workload, name, place)
                )
            lines.append(table_row([workload, *cells]))
        means = [self._geomean(columns[name], len(workloads)) for name in campaign.allocators]
        return [*lines, table_row(["**geometric mean**", *means])]

    def _geomean(self, rows: list[dict[int, float]], workloads: int) -> str:
        if not rows:
            return "-"
        mean = stats.geometric_mean([stats.geometric_mean(list(row.values())) for row in rows])
        seeds = [seed for seed in self.campaign.seeds if all(seed in row for row in rows)]
        by_seed = [stats.geometric_mean([row[seed] for row in rows]) for seed in seeds] or [mean]
        text = _ratio_cell(Mean(mean, min(by_seed), max(by_seed)), self.several)
        return f"**{text}**" + (f" of {len(rows)}" if len(rows) < workloads else "")

    def shares(self, place: tuple[str, int], show: Callable[[list[Run]], str]) -> list[str]:
        campaign = self.campaign
        lines = table_head(["", *campaign.allocators])
        for workload in campaign.workloads_at(place):
            found = [campaign.get(workload, name, place) for name in campaign.allocators]
            cells = [
                show(runs) if runs else self._nothing(workload, name, place)
                for name, runs in zip(campaign.allocators, found, strict=True)
            ]
            lines.append(table_row([workload, *cells]))
        return lines

    def averages(self, *values: Callable[[Run], float], form: str) -> Callable[[list[Run]], str]:
        """A cell: the mean over the seeds of each value, and how far the seeds are apart."""

        def show(runs: list[Run]) -> str:
            texts = []
            for value in values:
                each = [value(run) for run in runs]
                text = f"{statistics.fmean(each):{form}}"
                if self.several:
                    text += f" (±{(max(each) - min(each)) / 2:{form}})"
                texts.append(text)
            return " + ".join(texts)

        return show


def _heading(campaign: Campaign, made_by: str) -> list[str]:
    runs = campaign.runs
    lines = ["# Simulated runs", ""]
    if made_by:
        lines += [f"Made by: `{made_by}`", ""]
    scales = sorted({run.scale for run in runs if run.scale is not None})
    seeds = ", ".join(map(str, campaign.seeds))
    lines += [
        f"- {count_of(len(runs), 'run')} of {count_of(len(campaign.workloads), 'workload')} under "
        f"{count_of(len(campaign.allocators), 'allocator')}, seed{'s' if len(campaign.seeds) > 1 else ''} {seeds}"
        + (f", scale {', '.join(f'{scale:g}' for scale in scales)}" if scales else ""),
        f"- {sum(run.instructions for run in runs) / 1e6:,.0f} million instructions, simulated in "
        f"{sum(run.host_s for run in runs):,.0f} s of one host core",
    ]
    if mixed := campaign.mixed():
        lines.append(f"- **not all comparable: {mixed}**")
    if len(campaign.seeds) > 1:
        own = ", each with addresses of its own," if all(run.layout == run.seed for run in runs) else ""
        lines.append(
            f"- in brackets how far the seeds{own} are apart: of ratios (largest - smallest) / mean, else half of it"
        )
    return lines


def _failure_lines(campaign: Campaign) -> list[str]:
    """A line for each workload and reason."""
    lines = ["## What failed", ""]
    for workload, status, why in ordered((one.workload, one.exit_status, one.why) for one in campaign.failures):
        of_it = [
            one for one in campaign.failures if (one.workload, one.exit_status, one.why) == (workload, status, why)
        ]
        listed = {
            "under": ordered(one.allocator for one in of_it),
            "on": ordered(one.machine for one in of_it),
            "threads:": sorted({one.threads for one in of_it}),
            "seeds:": sorted({one.seed for one in of_it}),
        }
        where = ", ".join(f"{how} {', '.join(map(str, values))}" for how, values in listed.items())
        lines.append(f"- {workload} {where} ({count_of(len(of_it), 'run')}): exit status {status}, {why}")
    return lines


def _figure_lines(made: list[Panel]) -> list[str]:
    lines = ["## Speedup by threads", "", "![speedup by threads, a line for each allocator](campaign.svg)", ""]
    for panel in made:
        lines.append(
            f"{panel.machine}: cycles from start to end under {panel.base} / under the allocator, geometric mean of "
            f"{', '.join(panel.workloads)}: those with a result in every point. Above 1 the allocator is faster."
        )
        if panel.left_out:
            lines.append(f"Left out: {', '.join(panel.left_out)}.")
        lines.append("")
        counts = sorted({count for means in panel.speedups.values() for count in means})
        several = any(mean.spread for means in panel.speedups.values() for mean in means.values())
        lines += table_head(["threads", *panel.speedups])
        for count in counts:
            cells = [_ratio_cell(means.get(count), several) for means in panel.speedups.values()]
            lines.append(table_row([str(count), *cells]))
        lines.append("")
    return lines[:-1]


def as_markdown(campaign: Campaign, made: list[Panel], made_by: str = "") -> str:
    tables = _Tables(campaign)
    per_cent = tables.averages(lambda run: 100 * run.allocator_cycles / run.busy_cycles, form=".1f")
    stalls = tables.averages(
        lambda run: 100 * run.l2_stalls_inside / run.busy_cycles,
        lambda run: 100 * run.l2_stalls_caused / run.busy_cycles,
        form=".1f",
    )
    misses = tables.averages(
        lambda run: 100 * run.l2_miss_cycles_inside / run.busy_cycles,
        lambda run: 100 * run.l2_miss_cycles_caused / run.busy_cycles,
        form=".1f",
    )
    peak = tables.averages(lambda run: run.peak_bytes / 2**20, form=".1f")
    sections = [_heading(campaign, made_by)]
    if campaign.failures:
        sections.append(_failure_lines(campaign))
    if made:
        sections.append(_figure_lines(made))
    elif campaign.runs:
        sections.append(["No figure: no workload has a result under every allocator with every number of threads."])
    for place in campaign.places:
        machine, threads = place
        names = ordered(run.simulated_machine for run in campaign.runs if run.place == place)
        title = f"{', '.join(names)}{f' ({machine})' if machine not in names else ''}, {count_of(threads, 'thread')}"
        against = f"The allocator / {tables.base}: below 1 it is better."
        sections += [
            [f"## {title}"],
            ["### Busy cycles of all cores", "", against, "", *tables.ratios(place, "busy_cycles")],
            ["### Cycles from start to end", "", against, "", *tables.ratios(place, "cycles")],
            ["### The allocator's share of busy cycles, %", "", *tables.shares(place, per_cent)],
            [
                "### Cycles lost to L2 misses that allocation causes, % of busy cycles",
                "",
                "Inside the allocator + outside, on lines that it evicted or used. Each cycle that a core waited "
                "counts once.",
                "",
                *tables.shares(place, stalls),
            ],
            [
                "### The same misses' own times, % of busy cycles",
                "",
                "From request to data, overlapping or not: what was shown here before.",
                "",
                *tables.shares(place, misses),
            ],
            ["### Peak footprint, MiB", "", *tables.shares(place, peak)],
        ]
    return "\n\n".join("\n".join(lines) for lines in sections) + "\n"


def as_json(campaign: Campaign, made: list[Panel], made_by: str = "") -> dict:
    return {
        "format": FORMAT,
        "made_by": made_by,
        "mixed": campaign.mixed(),
        "runs": [asdict(run) for run in campaign.runs],
        "failures": [asdict(one) for one in campaign.failures],
        "figure": [asdict(panel) for panel in made],
    }


def write(campaign: Campaign, folder: Path, made_by: str = "") -> list[Path]:
    """campaign.md, campaign.json, and campaign.svg where there is anything to draw."""
    folder.mkdir(parents=True, exist_ok=True)
    made = panels(campaign)
    table, data, picture = (folder / f"campaign.{kind}" for kind in ("md", "json", "svg"))
    table.write_text(as_markdown(campaign, made, made_by))
    data.write_text(json.dumps(as_json(campaign, made, made_by), indent=1) + "\n")
    picture.unlink(missing_ok=True)
    if made:
        draw(made, picture)
    return [table, data, *([picture] if made else [])]
