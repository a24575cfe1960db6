"""tools/programs and tools/glibc-tests: that what differs is found, and that their lists agree with each other."""

import importlib.machinery
import importlib.util
import sys
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def load(name):
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), str(TOOLS / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.modules[loader.name] = module  # dataclasses look there
    loader.exec_module(module)
    return module


programs = load("programs")
glibc_tests = load("glibc-tests")


class Programs(unittest.TestCase):
    def test_there_are_fifty_and_each_has_a_name_of_its_own(self):
        names = [job.name for job in programs.jobs()]
        self.assertGreaterEqual(len(names), 50)
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(len(names), programs.JOBS.read_text().count("\n## "), "a job's line or function is malformed")

    def test_their_packages_are_installed_by_the_lists(self):
        essential = {"bash", "coreutils", "gzip", "sed", "tar"}
        listed = set()
        for name in ("apt.txt", "apt-programs.txt"):
            for line in (TOOLS / name).read_text().splitlines():
                listed.update(line.split("#")[0].strip().split("@")[0].split("|"))
        used = {package for job in programs.jobs() for package in job.packages}
        self.assertEqual(used - listed - essential, set())

    def test_what_differs_is_found(self):
        wanted = programs.Run(0, "text", 1)
        for run, said in (
            (programs.Run(0, "text", 9), ""),
            (programs.Run(0, "texts", 1), "another output"),
            (programs.Run(1, "text", 1), "status 1, with glibc 0"),
            (programs.Run(1006, "text", 1), "status SIGABRT, with glibc 0"),
            (programs.Run(None, "", 0), "did not end in time"),
        ):
            self.assertEqual(programs.Outcome([wanted, run]).difference(wanted), said)

    def test_high_peaks_and_failures_are_marked(self):
        program = {
            "name": "a",
            "unusable": "",
            "problems": ["a (solo): another output"],
            "peak_kib": {"glibc": [1024, 9000, 1000], "shared": [1229, 1, 9000], "solo": [1024]},
        }
        self.assertEqual(programs.cells(program, ["shared", "solo"], "*{:.2f}"), ["1.0", "*1.20", "FAILED"])


class GlibcTests(unittest.TestCase):
    def test_each_exception_names_flavours_and_a_reason(self):
        for name, (flavours, reason) in glibc_tests.GLIBCS_OWN.items():
            self.assertTrue(flavours == "*" or set(flavours.split()) <= set(glibc_tests.FLAVOURS), name)
            self.assertGreater(len(reason), 20, name)
            self.assertNotIn(name, glibc_tests.NO_TESTS)


if __name__ == "__main__":
    unittest.main()
