"""What an access to an array takes, what the array leaks and how large it is: arrays.csv, which CACTI made."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy

if TYPE_CHECKING:
    import pandas  # else loaded where the table is read

TABLE = Path(__file__).with_name("arrays.csv")
NODE_NM = 22
LINE_BITS = 512
L1, LARGE, RAM, CAM = "l1", "large", "ram", "cam"  # make_tables.py says what they are


class NoSuchArray(Exception):
    pass


@dataclass(frozen=True)
class Array:
    port_bits: int
    read_pj: float  # of port_bits
    write_pj: float
    leakage_mw: float
    area_um2: float

    @property
    def ports_a_line(self) -> float:
        """Accesses of the port that one line takes."""
        return LINE_BITS / self.port_bits


@functools.cache
def table(node_nm: int = NODE_NM) -> pandas.DataFrame:
    import pandas

    whole = pandas.read_csv(TABLE, comment="#")
    return whole[whole.node_nm == node_nm]


def at_least(kind: str, size: float) -> Array:
    """Of that size; or the table's smallest, as CACTI finds no organization for less."""
    smallest = table()[table().kind == kind].bytes.min()
    return find(kind, max(int(size), int(smallest)))


@functools.cache
def find(kind: str, size: int, ways: int = 1) -> Array:
    """The array of that many bytes: between the sizes in the table, on a straight line of logarithms; with the ways
    that are nearest. Raises NoSuchArray beyond the table's sizes."""
    rows = table()[table().kind == kind]
    distance = (rows.ways.clip(lower=1).map(math.log) - math.log(max(ways, 1))).abs()
    rows = rows.loc[distance.groupby(rows.bytes).idxmin()].sort_values("bytes")
    smallest, largest = rows.bytes.iloc[0], rows.bytes.iloc[-1]
    if not smallest <= size <= largest:
        raise NoSuchArray(
            f"no array of {size:,} bytes in {TABLE.name}: those of kind {kind} have {smallest:,} to {largest:,}"
        )

    def at(column: str) -> float:
        return float(numpy.exp(numpy.interp(math.log(size), numpy.log(rows.bytes), numpy.log(rows[column]))))

    return Array(int(rows.port_bits.iloc[0]), at("read_pj"), at("write_pj"), at("leakage_mw"), at("area_um2"))
