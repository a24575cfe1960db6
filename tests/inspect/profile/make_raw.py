"""Makes raw profiles: the call stacks and modules are those of a real program, which says them itself
(sample_program.cpp); the numbers are the test's."""

import re
import struct
import subprocess
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Module:
    start: int
    end: int
    offset: int
    path: str
    build_id: str


@dataclass
class Program:
    modules: list[Module]
    stacks: dict[str, list[int]]  # by the site's name, return addresses
    path: str = "/usr/bin/sample"


@dataclass
class Raw:
    """A raw file, line by line; the lists are to be changed at will."""

    program: Program
    pid: int = 4711
    began: int = 1_795_000_000_000
    lasted: int = 12_500
    stats: dict[str, int] = field(default_factory=dict)
    classes: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    sites: list[str] = field(default_factory=list)
    live: list[str] = field(default_factory=list)

    def frames(self, name: str) -> str:
        return " ".join(self._frame(address) for address in self.program.stacks[name])

    def _frame(self, address: int) -> str:
        for number, module in enumerate(self.program.modules, 1):
            if module.start <= address < module.end:
                return f"{number}:{address:x}"
        return f"0:{address:x}"

    def text(self) -> str:
        modules = [
            f"module {number} {one.start:x} {one.end:x} {one.offset:x} {one.build_id} {escaped(one.path)}"
            for number, one in enumerate(self.program.modules, 1)
        ]
        lines = ["annex-profile 1", f"pid {self.pid}", f"program {escaped(self.program.path)}", "version 0.1.0 shared"]
        lines += [f"began {self.began}", f"written {self.began + self.lasted}", "rate 524288", "page 4096"]
        lines += [f"stat {name} {number}" for name, number in self.stats.items()]
        lines += [f"class {one}" for one in self.classes] + modules + [f"label {one}" for one in self.labels]
        lines += [f"site {one}" for one in self.sites] + [f"live {one}" for one in self.live] + ["end"]
        return "\n".join(lines) + "\n"


def escaped(path: str) -> str:
    return path.replace("\\", "\\\\").replace("\n", "\\n")


def run(program: Path) -> Program:
    output = subprocess.run([program], capture_output=True, text=True, check=True, timeout=60).stdout
    stacks = {words[1]: [int(word, 16) for word in words[2:]] for words in lines_of(output, "site")}
    modules = []
    for words in lines_of(output, "map"):
        start, end = (int(word, 16) for word in words[1].split("-"))
        if "x" in words[2] and len(words) > 6:
            path = words[6]
            modules.append(Module(start, end, int(words[3], 16), path, build_id(path)))
    modules.sort(key=lambda module: module.path != str(program))  # the program is the first
    return Program(modules, stacks)


def lines_of(output: str, kind: str) -> list[list[str]]:
    return [words for line in output.splitlines() if (words := line.split()) and words[0] == kind]


def build_id(path: str) -> str:
    """Of the file's notes: an ELF note with the name GNU and the type 3."""
    if not path.startswith("/"):
        return "-"
    found = re.search(rb"\x04\0\0\0(.\0\0\0)\x03\0\0\0GNU\0", Path(path).read_bytes(), re.DOTALL)
    if not found:
        return "-"
    (length,) = struct.unpack("<I", found[1])
    return found.string[found.end() : found.end() + length].hex()


def sample(program: Program) -> Raw:
    """Four call sites, whose numbers are easy to add up."""
    raw = Raw(program)
    raw.stats = {"reserved": 8 << 20, "committed": 4 << 20, "metadata": 10_000, "used": 300_000, "used_spans": 200_000}
    raw.stats |= {"slabs": 131_072, "dirty": 65_536, "resident": 9 << 20, "peak_resident": 12 << 20}
    raw.classes = ["112 1 65536 580 200", "320 1 65536 200 60"]
    raw.labels = ["1 request /index", "1 user a\\sb"]
    raw.sites = [
        f"1 1 10 1000.000 100000 900.000 500.000 0.000 300.000 0.000 0.000 100.000 0.000 0.000 {raw.frames('inlined')}",
        f"2 0 5 250.500 75150 0.000 0 0 0 0 0 0 0 0 {raw.frames('template')}",
        f"3 0 3 4.000 800000 3.000 0 0 0 3.000 0 0 0 0 {raw.frames('last')}",
        f"4 0 2 40.000 12000 20.000 20 0 0 0 0 0 0 0 {raw.frames('library')} 0:7fff12345678",
    ]
    raw.live = [
        "1 7f0000001000 100 112 60.000 5000 4711 112 4",
        "1 7f0000001070 100 112 40.000 5000 4711 112 2,1",
        "2 7f0000101000 300 320 10.500 100 4712 320 10",
        "3 7f0000201000 200000 200704 1.250 100 4712 180224 -",
        "4 7f0000101400 290 320 21.000 100 4712 0 8",
    ]
    return raw
