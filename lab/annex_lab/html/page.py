"""The page: what goes into which section, and the template filled with it."""

from collections import defaultdict
from functools import partial
from importlib import resources

import jinja2
from markupsafe import Markup

from annex_lab import report
from annex_lab.allocators import is_ours
from annex_lab.html import heat, palette, plots, scaling, text
from annex_lab.html.shape import Data, clean

PERCENTILES = [("p50_ns", "p50"), ("p99_ns", "p99"), ("p999_ns", "p99.9"), ("max_ns", "max")]


def render(document: dict) -> str:
    package = resources.files("annex_lab.html")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {"kib": text.kib, "plural": text.plural}
    environment.tests["ours"] = is_ours
    template = environment.from_string((package / "template.html.j2").read_text(encoding="utf-8"))
    css = (package / "style.css").read_text(encoding="utf-8")
    script = (package / "sort.js").read_text(encoding="utf-8")
    document = clean(document)
    data = Data(document)
    return template.render(
        d=document,
        rounds=report.rounds(document),
        data=data,
        css=Markup(css + palette.css()),
        script=Markup(script),
        warnings=warnings(data),
        means=means(data),
        scatter=scatter(data),
        scalings=scalings(data),
        heats=heats(data),
        spreads=spreads(data),
        latencies=latencies(data),
        lines=[(name, *plots.line_of(data, name)) for name in data.allocators],
        counts=counts(data),
        steps=legend(),
    )


def warnings(data: Data) -> list[tuple[str, list[str]]]:
    """What a reader must know before any number: each a sentence and its particulars."""
    d, found = data.document, []
    if d["interrupted"]:
        found.append(("The run was interrupted: only what was done by then is shown.", []))
    if not d["results"]:
        found.append(("There is not a single sample.", []))
    if d["failures"]:
        each = [f"{one['workload']} under {one['allocator']}: {one['why']}" for one in d["failures"]]
        found.append((f"{text.plural(len(each), 'failure')}: a program failed under an allocator.", each))
    if d["absent"]:
        each = [f"{one['allocator']}: {one['why']}" for one in d["absent"]]
        found.append((f"{text.plural(len(each), 'allocator')} could not be had.", each))
    if d["skipped"]:
        each = [f"{one['workload']}: {one['why']}" for one in d["skipped"]]
        found.append((f"{text.plural(len(each), 'program was', 'programs were')} left out.", each))
    disturbed = data.samples[data.samples["disturbed"].astype(bool)]
    if len(disturbed):
        share = f"{len(disturbed)} of {text.plural(len(data.samples), 'sample')}"
        by_program = disturbed["workload"].value_counts()
        most = ", ".join(f"{name} ({number})" for name, number in by_program.head(5).items())
        found.append((f"{share} disturbed by other processes to the last try, most of {most}.", []))
    few = data.samples.groupby(["workload", "threads", "allocator"]).size() if len(data.samples) else None
    if few is not None and few.max() < 3:
        found.append(("Fewer than three rounds: nothing says how large the noise is.", []))
    return found


def means(data: Data) -> list[tuple[str, heat.Table]]:
    """Geometric means: everybody against the yardstick, then ours against each of the others."""
    found = []
    if len(data.allocators) > 1:
        found.append((f"Every allocator against {data.yardstick}", heat.against_yardstick(data)))
    if len(data.allocators) > 2:
        found += [(f"{name} against each other", heat.against_each(data, name)) for name in data.ours]
    return [(title, table) for title, table in found if not table.empty]


def scatter(data: Data) -> list[plots.Picture]:
    """The main groups, those that are no part of another, with both kinds of time; the parts with CPU time alone."""
    groups = list(data.document["groups"])
    main = [group for group in groups if "," not in group] or groups[:1]
    wanted = [(group, metric) for group in main for metric in ("cpu_s", "score")]
    wanted += [(group, "cpu_s") for group in groups if group not in main]
    found = [plots.time_against_memory(data, *one, f"t{number}") for number, one in enumerate(wanted)]
    return [picture for picture in found if picture]


def scalings(data: Data) -> list[plots.Picture]:
    found = scaling.programs(data).items()
    return [scaling.picture(data, workload, rows, f"s{number}") for number, (workload, rows) in enumerate(found)]


def heats(data: Data) -> list[tuple[heat.Metric, heat.Table]]:
    known = [metric for metric in heat.METRICS.values() if data.samples[metric.name].notna().any()]
    found = [(metric, heat.program_table(data, metric)) for metric in known]
    return [(metric, table) for metric, table in found if not table.empty]


def counts(data: Data) -> list[tuple[heat.Metric, heat.Table]]:
    if not len(data.counts):
        return []
    return [(metric, heat.count_table(data, metric)) for metric in heat.COUNTS.values()]


def spreads(data: Data) -> list[plots.Picture]:
    found = [plots.spread(data, row, f"d{number}") for number, row in enumerate(data.rows)]
    return [picture for picture in found if picture]


def latencies(data: Data) -> list[tuple[str, list[plots.Picture], heat.Table]]:
    """For each program its curves and the percentiles, allocators by calls."""
    by_program = defaultdict(lambda: defaultdict(list))
    for one in data.document.get("latencies", []):
        if one["calls"] > 0:
            by_program[one["workload"]][one["call"]].append(one)
    found = []
    for number, (workload, calls) in enumerate(by_program.items()):
        draw = partial(plots.latency, data, workload)
        pictures = [draw(call, entries, f"l{number}{call[0]}") for call, entries in calls.items()]
        found.append((workload, [picture for picture in pictures if picture], percentiles(data, calls)))
    return found


def percentiles(data: Data, calls: dict[str, list[dict]]) -> heat.Table:
    heads = [f"{call} {title}" for call in calls for _, title in PERCENTILES]
    known = {(one["allocator"], call): one for call, entries in calls.items() for one in entries}
    section = heat.Section("")
    for name in data.allocators:
        cells = []
        for call in calls:
            mine, base = known.get((name, call)), known.get((data.yardstick, call))
            cells += [_percentile(mine, base, field, name == data.yardstick) for field, _ in PERCENTILES]
        if any(cell is not heat.NOTHING for cell in cells):
            section.lines.append(heat.Line(name, cells))
    return heat.Table("allocator", heads, [section])


def _percentile(mine: dict | None, base: dict | None, field: str, is_yardstick: bool) -> heat.Cell:
    if mine is None:
        return heat.NOTHING
    value, shown = mine[field], text.nanoseconds(mine[field])
    tip = f"{text.plural(mine['calls'], 'call')} in all"
    if is_yardstick or base is None or base[field] <= 0:
        return heat.Cell(shown, "absolute", tip, value)
    ratio = value / base[field]
    tip += f"; {text.ratio(ratio)} of {base['allocator']}'s"
    return heat.Cell(shown, palette.step(ratio), tip, value)


def legend() -> list[tuple[str, str]]:
    """Class and bounds of every step of colour, from the best to the worst."""
    better = [(f"b{n}", f"{1 / bound:.2f}") for n, bound in reversed(list(enumerate(palette.STEPS, 1)))]
    worse = [(f"w{n}", f"{bound:.2f}") for n, bound in enumerate(palette.STEPS, 1)]
    shown = [(kind, f"< {bound}") for kind, bound in better]
    return [*shown, ("l0", "level"), *((kind, f"> {bound}") for kind, bound in worse)]
