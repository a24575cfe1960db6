"""The command annex-lab energy."""

import json
import shlex
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from annex_lab.sim.energy import arrays, model, shown
from annex_lab.sim.energy.parameters import Drawn, Estimate, Quantity, UnknownParameter, draw, estimate, parameters
from annex_lab.sim.energy.shown import CHIP, WHOLE

FORMAT = "annex-energy 1"
LEAST_SPREAD = 0.001  # a parameter that leaves less open than this is not told
# Else a saving is of two different programs.
SAME = ("scale", "workload_options", "requested_threads", "seed")


class _Unusable(Exception):
    """The message says which file, and why."""


@dataclass(frozen=True)
class _Run:
    file: Path
    results: dict
    used: model.Used

    @property
    def program(self) -> str:
        return self.results.get("workload") or " ".join(self.results.get("command", ["?"]))

    @property
    def name(self) -> str:
        of = self.results
        return f"{self.program}, {of.get('allocator', {}).get('name', '?')}, {of['machine'].get('name', '?')}"

    def asked(self, name: str) -> object:
        """None where it says nothing of it, as older results do of what is new, or has nothing of it."""
        return self.results.get(name) or None

    def rows(self) -> list[tuple[str, Quantity, Quantity | None]]:
        """What, its energy and its area: by component, and their sums."""
        used = self.used
        parts = [(name, used.energy[name], used.area.get(name)) for name in used.energy]
        return [*parts, (CHIP, used.chip, used.chip_area), (WHOLE, used.whole, None)]


def _read(file: Path, drawn: Drawn) -> _Run:
    try:
        results = json.loads(file.read_text())
        if not isinstance(results, dict):
            raise model.NoResult("not the results of annex-lab sim")
        if "failure" in results:
            raise model.NoResult("that run failed, and has no results")
        return _Run(file, results, model.of(results, drawn))
    except (OSError, model.NoResult, arrays.NoSuchArray) as why:
        raise _Unusable(f"{file}: {why}") from None
    except ValueError as why:
        raise _Unusable(f"{file}: not JSON ({why})") from None


def _fixed(settings: list[str]) -> dict[str, float]:
    fixed = {}
    for setting in settings:
        name, _, value = setting.partition("=")
        try:
            fixed[name.strip()] = float(value)
        except ValueError:
            raise _Unusable(f"--set {setting}: must be NAME=NUMBER, as core.idle=0.5") from None
    return fixed


def savings(base: model.Used, used: model.Used) -> dict[str, Estimate]:
    """Energy of the base / energy of the other: above 1, the other saves. Both from the same Drawn."""
    return {CHIP: estimate(base.chip / used.chip), WHOLE: estimate(base.whole / used.whole)}


def _by_parameter(base: dict, used: dict, fixed: dict[str, float]) -> list[dict]:
    """The chip's saving where only one parameter is drawn, and the others are nominal: widest interval first."""
    nominal = {name: of.value for name, of in parameters().items()} | fixed
    found = []
    for name in parameters().keys() - fixed.keys():
        drawn = draw({other: value for other, value in nominal.items() if other != name})
        saved = savings(model.of(base, drawn), model.of(used, drawn))[CHIP]
        if saved.high - saved.low >= LEAST_SPREAD * saved.value:
            found.append((name, saved))
    found.sort(key=lambda one: (one[1].low - one[1].high, one[0]))
    known = parameters()
    return [
        {"name": name, "low": known[name].low, "high": known[name].high, "unit": known[name].unit}
        | {"saving": asdict(saved)}
        for name, saved in found
    ]


def _warnings(base: _Run | None, runs: list[_Run]) -> list[str]:
    found = []
    for run in [*([base] if base else []), *runs]:
        if not run.results.get("complete", True):
            found.append(f"{run.file}: not the whole run")
        if base is None:
            continue
        differing = [
            name.removeprefix("requested_").replace("_", " ") for name in SAME if run.asked(name) != base.asked(name)
        ]
        if run.program != base.program:
            differing.insert(0, "program")
        if differing:
            found.append(f"{run.file}: another {', '.join(differing)} than the base's")
    return found


def _as_json(base: _Run | None, runs: list[_Run], fixed: dict[str, float], by_parameter: bool) -> dict:
    def one(run: _Run) -> dict:
        seconds = run.used.seconds
        about = {name: run.results.get(name) for name in ("workload", "scale", "seed", "simulator")}
        document = {
            "file": str(run.file),
            "name": run.name,
            **about,
            "allocator": run.results.get("allocator", {}).get("name"),
            "machine": run.results["machine"].get("name"),
            "threads": run.results.get("requested_threads"),
            "seconds": seconds,
            "energy_j": {name: asdict(estimate(energy)) for name, energy, _ in run.rows()},
            "power_w": {name: asdict(estimate(energy / seconds)) for name, energy, _ in run.rows()},
            "area_mm2": {name: asdict(estimate(area)) for name, _, area in run.rows() if area is not None},
        }
        if base and run is not base:
            power = (base.used.chip / base.used.seconds) / (run.used.chip / seconds)
            document["saving"] = {name: asdict(of) for name, of in savings(base.used, run.used).items()}
            document["saving_of_power"] = asdict(estimate(power))
            if by_parameter:
                document["by_parameter"] = _by_parameter(base.results, run.results, fixed)
        return document

    return {
        "format": FORMAT,
        "made_by": shlex.join(["annex-lab", *sys.argv[1:]]),
        "set": fixed,
        "base": one(base) if base else None,
        "runs": [one(run) for run in runs],
    }


def energy(
    results: Annotated[list[Path], typer.Argument(help="files that annex-lab sim --json wrote")],
    against: Annotated[
        Path | None, typer.Option(metavar="BASE.json", help="a run to compare with: what is saved, with its interval")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="a parameter of the model, fixed: core.idle=0.5; many times (energy/parameters.csv)"
        ),
    ] = None,
    by_parameter: Annotated[
        bool,
        typer.Option("--by-parameter", help="with --against: what each parameter alone leaves open in what is saved"),
    ] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="write the same here, with more digits")] = None,
) -> None:
    """Energy, mean power and area of simulated runs, by component, each with the interval that its parameters leave.

    The intervals are of 95 %, of the parameters; the simulated times have an error of their own. What is saved against
    a base is computed with the same parameters for both, so what they share cancels. docs/hardware-energy.md

    Exit status: 2 where a file is no result.
    """
    console = Console(stderr=True)
    try:
        fixed = _fixed(settings or [])
        drawn = draw(fixed)
        base = _read(against, drawn) if against else None
        runs = [_read(file, drawn) for file in results]
    except (_Unusable, UnknownParameter) as why:
        console.print(f"annex-lab energy: {why}", style="red", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(2) from None
    for warning in _warnings(base, runs):
        console.print(f"annex-lab energy: {warning}", style="yellow", markup=False, highlight=False, soft_wrap=True)
    document = _as_json(base, runs, fixed, by_parameter)
    if json_file:
        json_file.write_text(json.dumps(document, indent=1) + "\n")
    Console(soft_wrap=True).print(shown.document(document), highlight=False)
