"""Who pins the pages: pins_test.py ANNEX-INSPECT FOLDER-OF-PROGRAMS [--flavours shared,solo,...]

The table of `annex profile show` names each program's culprit first. What it says goes back without that call site does
so when the program frees the blocks. A run in which they were never allocated has at least as much less; of the cache
more, as what lies between its blocks then lies close together. With other flavours it only says how far off.
"""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

INSPECT = PROGRAMS = None
FLAVOURS = ["shared"]
CULPRITS = {"scattered": "remember_session", "every_class": "load_plugin", "cache": "cache_put"}
# So small that each culprit has 700 samples or more: its figures are right within some 4 % by chance.
RATE = 512
BOUND = 0.2  # the allocator has other memory too, such as metadata, that goes back with the blocks
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}


def run(flavour: str, program: str, folder: Path, *more: str) -> dict[str, int]:
    """What was resident before and after the culprit's blocks were freed."""
    command = [INSPECT, "profile", "--mode", flavour, "--rate", str(RATE), "-o", f"{folder}/"]
    command += ["--", PROGRAMS / program, folder / "pins.raw", *more]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    return {when: int(number) for when, number in re.findall(r"^(before|after) (\d+)$", result.stdout, re.MULTILINE)}


def pins(raw: Path) -> list[tuple[str, float]]:
    """The table's rows: the function that allocates, and what goes back without it."""
    command = [INSPECT, "profile", "show", raw]
    text = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    row = r" *[\d.,]+ \w+ +([\d.,]+) (\w+) +[\d.,]+ \w+  (\w+) "
    table = next(part for part in text.split("\n\n") if "goes back without it" in part)
    rows = [re.match(row, line) for line in table.splitlines()[1:]]
    return [(found[3], float(found[1].replace(",", "")) * UNITS[found[2]]) for found in rows if found]


class PinsTest(unittest.TestCase):
    def look(self, flavour: str, program: str):
        with tempfile.TemporaryDirectory(prefix="annex-pins-") as name:
            folder = Path(name)
            told = run(flavour, program, folder)
            rows = pins(folder / "pins.raw")
            without = run(flavour, program, folder, "without")
        freed, never = told["before"] - told["after"], told["before"] - without["before"]
        self.assertGreater(freed, 8 << 20)  # else there is nothing to prove
        site, predicted = rows[0]
        print(
            f"{program}, {flavour}: {site}, {predicted / 2**20:.1f} MiB; went back {freed / 2**20:.1f} (prediction"
            f" {predicted / freed - 1:+.1%}); without it {never / 2**20:.1f} less ({predicted / never - 1:+.1%})",
            flush=True,
        )
        if flavour == "shared":
            self.assertEqual(site, CULPRITS[program])
            self.assertAlmostEqual(predicted / freed, 1, delta=BOUND)
            self.assertLess(predicted / never, 1 + BOUND)

    def test_culprits(self):
        for program in CULPRITS:
            for flavour in FLAVOURS:
                with self.subTest(program=program, flavour=flavour):
                    self.look(flavour, program)


if __name__ == "__main__":
    if "--flavours" in sys.argv:
        FLAVOURS = sys.argv.pop(place := sys.argv.index("--flavours") + 1).split(",")
        del sys.argv[place - 1]
    INSPECT, PROGRAMS = (Path(word).resolve() for word in sys.argv[1:3])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
