"""Whether profiles are right: accuracy_test.py ANNEX-INSPECT KNOWN-SITES PLUGIN-ONE PLUGIN-TWO

known_sites says what each of its call sites has in use; the profile is read by a decoder of the tests' own, and by
pprof itself where go is. A site with n samples is right within its standard deviation, 1/sqrt(n) of it, at most:

    10,000 samples of the whole program   each site within 5 %, all within 1 %; or 4 deviations, where that is more
    10,000 samples of each small site     each site within 5 %, all within 1 %: 5 deviations, and 4

Three deviations would be passed by one site in 370: in a test with eight, each fiftieth run would fail.
"""

import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "profile"))
import decode

INSPECT = PROGRAM = PLUGINS = None
GO = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
LIVE = 112 << 20  # bytes that are in use at the end, about
ALLOCATED = 2 * LIVE
OF_EACH_SMALL_SITE = 400  # bytes between two samples: each has some 4 MiB in use or more


class Recorded:
    def __init__(self, folder: Path, rate: int):
        self.folder = folder
        command = [INSPECT, "profile", "--rate", str(rate), "-o", f"{folder}/", "--", PROGRAM, *PLUGINS]
        result = subprocess.run(command, capture_output=True, text=True, timeout=200)
        assert result.returncode == 0, result.stderr
        self.truth = {name: int(number) for name, number in re.findall(r"^site (\w+) (\d+)$", result.stdout, re.M)}
        self.same_place = "same place 1" in result.stdout
        self.raw = next(folder.glob("*.raw"))
        self.convert()

    def convert(self):
        self.pprof = self.folder / "read.pb.gz"
        convert = [INSPECT, "profile", "convert", self.raw, "--to", "pprof", "-o", self.pprof]
        subprocess.run(convert, check=True, timeout=100)

    def site_of(self, names) -> str:
        return next((name for name in names if name in self.truth), "others")

    def by_decoder(self) -> dict[str, float]:
        """Of each site the bytes in use."""
        profile = decode.read(self.pprof)
        in_use = profile["types"].index(("inuse_space", "bytes"))
        found = Counter()
        for sample in profile["samples"]:
            lines = [line for location in sample["locations"] for line in location["lines"]]
            site = self.site_of(function["name"] for function, _line in lines)
            found[site] += sample["values"][in_use]
        return dict(found)

    def by_pprof(self) -> dict[str, float]:
        options = ["-top", "-cum", "-unit=B", "-nodefraction=0", "-nodecount=10000", "-sample_index=inuse_space"]
        environment = {**os.environ, "PPROF_TMPDIR": str(self.folder), "GOTOOLCHAIN": "local"}
        command = [GO, "tool", "pprof", *options, self.pprof]
        text = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=280, env=environment, cwd=self.folder
        ).stdout
        rows = re.findall(r"^ *\S+ +\S+ +\S+ +([\d.]+)B? +\S+ +(\w+)", text, re.MULTILINE)
        return {name: float(number) for number, name in rows if name in self.truth}


class AccuracyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="annex-accuracy-")
        cls.few, cls.many = (
            Recorded(cls.folder(name), rate)
            for name, rate in (("few", ALLOCATED // 10000), ("many", OF_EACH_SMALL_SITE))
        )

    @classmethod
    def folder(cls, name: str) -> Path:
        path = Path(cls.scratch.name) / name
        path.mkdir()
        return path

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def deviation(self, recorded: Recorded, site: str) -> float:
        """One standard deviation, as a part of the site's bytes: that of samples that all speak of as many bytes."""
        count = sum(1 for owner in self.owners(recorded) if owner == site)
        return 1 / math.sqrt(max(count, 1))

    def owners(self, recorded: Recorded) -> list[str]:
        """The site of each sampled block in use."""
        if not hasattr(recorded, "owners"):
            document = subprocess.run(
                [INSPECT, "profile", "convert", recorded.raw, "--to", "json"], capture_output=True, check=True
            ).stdout
            made = json.loads(document)
            names = [frame["short"] for frame in made["frames"]]
            named = [recorded.site_of(names[frame] for frame in site["frames"]) for site in made["sites"]]
            numbers = re.findall(r"^site (\d+) ", recorded.raw.read_text(), re.MULTILINE)
            of = dict(zip(numbers, named, strict=True))
            recorded.owners = [of[number] for number in re.findall(r"^live (\d+) ", recorded.raw.read_text(), re.M)]
        return recorded.owners

    def check_sites(self, recorded: Recorded, deviations: float):
        found = recorded.by_decoder()
        for site, truth in recorded.truth.items():
            bound = max(0.05, deviations * self.deviation(recorded, site))
            with self.subTest(site=site):
                self.assertIn(site, found)
                error = found[site] / truth - 1
                print(f"{site}: {error:+.2%}, bound {bound:.1%}", flush=True)
                self.assertLess(abs(error), bound)

    def check_sum(self, recorded: Recorded, deviations: float):
        found = recorded.by_decoder()
        others = found.pop("others", 0)
        truth = sum(recorded.truth.values())
        # Variances of sites add up. What libc and libstdc++ have is in no site of ours.
        variance = sum((self.deviation(recorded, site) * bytes_) ** 2 for site, bytes_ in recorded.truth.items())
        bound = max(0.01, deviations * math.sqrt(variance) / truth)
        error = sum(found.values()) / truth - 1
        print(f"all {len(self.owners(recorded)):,} samples in use: {error:+.2%}, bound {bound:.1%}", flush=True)
        self.assertLess(abs(error), bound)
        self.assertLess(others / truth, 0.02)

    def test_sites_with_10_000_samples_of_all(self):
        self.assertGreater(self.samples(self.few), 5000)
        self.check_sites(self.few, 4)

    def samples(self, recorded: Recorded) -> int:
        return sum(map(int, re.findall(r"^site \d+ \d+ (\d+) ", recorded.raw.read_text(), re.MULTILINE)))

    def test_sum_with_10_000_samples_of_all(self):
        self.check_sum(self.few, 4)

    def test_sites_with_many_samples(self):
        self.check_sites(self.many, 0)

    def test_sum_with_many_samples(self):
        self.check_sum(self.many, 0)

    def test_libraries_at_the_same_place(self):
        """Both are told apart, though the second one lies where the first one was."""
        profile = decode.read(self.many.pprof)
        for number, plugin in zip(("one", "two"), PLUGINS, strict=True):
            files = {
                location["mapping"]["file"]
                for sample in profile["samples"]
                for location in sample["locations"]
                if any(function["name"] == f"plugin_{number}" for function, _line in location["lines"])
            }
            self.assertEqual(files, {str(plugin)})
        self.assertTrue(self.many.same_place, "the loader took another place: nothing was put to the test")

    def test_pprof_itself(self):
        if not GO:
            self.skipTest("go is not here (golang-go): pprof itself does not read the profile")
        found = self.many.by_pprof()
        decoded = self.many.by_decoder()
        for site, truth in self.many.truth.items():
            with self.subTest(site=site):
                self.assertLess(abs(found.get(site, 0) / truth - 1), 0.05)
                self.assertAlmostEqual(found[site], decoded[site], delta=1)


if __name__ == "__main__":
    INSPECT, PROGRAM, *PLUGINS = (Path(word).resolve() for word in sys.argv[1:5])
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]], verbosity=2)
