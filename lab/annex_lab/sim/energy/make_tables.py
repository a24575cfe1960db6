"""Makes arrays.csv: what CACTI says of every array that a machine here may have.

    python -m annex_lab.sim.energy.make_tables [--cacti FOLDER]

Nobody needs it but who changes the table, which is checked in. It takes CACTI's sources from a wheel of PyPI, whose
own binary is of another system, and builds them with g++ and make; or a folder where they are built already.
"""

import csv
import io
import re
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

OUT = Path(__file__).with_name("arrays.csv")
WHEEL = "hwcomponents-cacti==1.0.40"
NODE_NM = 22  # the smallest that CACTI's own tables of technology hold, and McPAT's
CHECKED_NM = 28  # Mallacc's
KELVIN = 360
KIB = 1024

# The devices: fast ones where an access is waited for, cells that leak little where there are many of them.
FAST = ("itrs-hp", "itrs-hp")  # cells, periphery
LARGE = ("itrs-lstp", "itrs-hp")


@dataclass(frozen=True)
class Array:
    kind: str
    bytes: int
    ways: int  # 1: a table; 0: searched by content, all entries at once
    port_bits: int  # of one access
    node_nm: int = NODE_NM

    @property
    def settings(self) -> dict[str, object]:
        cells, periphery = LARGE if self.kind == "large" else FAST
        return {
            "size (bytes)": self.bytes,
            "associativity": self.ways,
            "block size (bytes)": 64 if self.kind in ("l1", "large") else self.port_bits // 8,
            "output/input bus width": self.port_bits,
            "technology (u)": self.node_nm / 1000,
            "operating temperature (K)": KELVIN,
            "access mode (normal, sequential, fast) -": "sequential" if self.kind == "large" else "normal",
            "cache type": {"ram": "ram", "cam": "cam"}.get(self.kind, "cache"),
            "search port": 1 if self.kind == "cam" else 0,
            "Data array cell type -": cells,
            "Tag array cell type -": cells,
            "Data array peripheral type -": periphery,
            "Tag array peripheral type -": periphery,
        }


def wanted() -> list[Array]:
    """Sizes with which CACTI finds no organization are left out of the table."""
    l1 = [Array("l1", size * KIB, ways, 64) for size in (1, 2, 4, 8, 16, 32, 64, 128) for ways in (2, 4, 8, 16)]
    large = [Array("large", size * KIB, ways, 512) for size in (64, 128, 256, 512, 1024, 2048) for ways in (4, 8, 16)]
    large += [Array("large", size * KIB * KIB, 16, 512) for size in (4, 8, 16, 32)]
    ram = [Array("ram", size, 1, 128) for size in (256, 512, *(n * KIB for n in (1, 2, 4, 8, 16, 32)))]
    cam = [Array("cam", size, 0, 64) for size in (128, 256, 512, *(n * KIB for n in (1, 2, 4, 8)))]
    return [*l1, *large, *ram, *cam, Array("cam", 128, 0, 64, CHECKED_NM), Array("ram", 256, 1, 64, CHECKED_NM)]


def fetch(folder: Path) -> Path:
    """CACTI's sources, built."""
    options = ["--no-deps", "--only-binary=:all:", "--python-version=3.12", "--quiet", "--dest", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "download", *options, WHEEL], check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    sources = folder / "hwcomponents_cacti" / "cacti"
    subprocess.run(["make", "opt"], cwd=sources, check=True, capture_output=True)
    return sources


def configuration(template: str, array: Array) -> str:
    """CACTI's own example, with the array's settings in place of its."""
    names = tuple(f"-{name.removesuffix(' -')}" for name in array.settings)
    kept = [line for line in template.splitlines() if not line.strip().startswith(names)]
    shown = (f'"{value}"' if isinstance(value, str) else value for value in array.settings.values())
    return "\n".join([*kept, *(f"-{name} {value}" for name, value in zip(array.settings, shown, strict=True))]) + "\n"


def run(cacti: Path, array: Array) -> dict[str, float] | None:
    """What CACTI says; None: it finds no organization."""
    with tempfile.NamedTemporaryFile("w", suffix=".cfg") as file:
        file.write(configuration((cacti / "cache.cfg").read_text(), array))
        file.flush()
        said = subprocess.run(["obj_opt/cacti", "-infile", file.name], cwd=cacti, capture_output=True, text=True).stdout

    def number(what: str) -> float:
        found = re.search(re.escape(what) + r"\s*:\s*([\d.e+-]+)", said)
        if found is None:
            raise ValueError(f"CACTI says nothing of {what}, of {array}")
        return float(found[1])

    if "Access time (ns)" not in said:
        return None
    height, width = map(float, re.search(r"height x width \(mm\): ([\d.]+) x ([\d.]+)", said).groups())
    return {
        "read_pj": number("Total dynamic read energy per access (nJ)") * 1000,
        "write_pj": number("Total dynamic write energy per access (nJ)") * 1000,
        "leakage_mw": number("Total leakage power of a bank (mW)") + number("Total gate leakage power of a bank (mW)"),
        "area_um2": height * width * 1e6,
        "access_ns": number("Access time (ns)"),
    }


HEADER = f"""\
# What CACTI 7 says of arrays; made by python -m annex_lab.sim.energy.make_tables
# from the sources in PyPI's wheel {WHEEL} ("version 7.0.3DD Prerelease of Aug, 2012"), built with its make opt.
# {KELVIN} K, one port for reading and writing, one bank, lines of 64 bytes, the rest as in its cache.cfg.
# kind l1: tags beside data, fast devices (itrs-hp); large: data after tags, cells of itrs-lstp, fast periphery;
# ram: a table without tags; cam: searched by content. Energy is of one access of port_bits; leakage with the gates'.
# node_nm {CHECKED_NM} is for a comparison with Mallacc's published areas alone.
"""


def main(
    cacti: Annotated[Path | None, typer.Option(help="a folder with CACTI's sources, built")] = None,
    out: Annotated[Path, typer.Option(help="where the table goes")] = OUT,
) -> None:
    """Makes the table of arrays with CACTI."""
    with tempfile.TemporaryDirectory(prefix="annex-cacti-") as scratch:
        sources = cacti or fetch(Path(scratch))
        text = io.StringIO(HEADER)
        text.seek(0, io.SEEK_END)
        writer = None
        for array in wanted():
            found = run(sources, array)
            if found is None:
                continue
            row = {**vars(array), **{name: f"{value:.4g}" for name, value in found.items()}}
            if writer is None:
                writer = csv.DictWriter(text, row, lineterminator="\n")
                writer.writeheader()
            writer.writerow(row)
    out.write_text(text.getvalue())


if __name__ == "__main__":
    typer.run(main)
