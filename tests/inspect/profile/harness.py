"""What the tests of `annex profile` have in common: a folder, the sample program's raw profile, calls of it."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import make_raw

INSPECT = PROGRAM = None  # from the command line
SOURCE = Path(__file__).resolve().parent


def main() -> None:
    """TEST.py ANNEX-INSPECT SAMPLE-PROGRAM"""
    global INSPECT, PROGRAM
    INSPECT, PROGRAM = (Path(word).resolve() for word in sys.argv[1:3])
    sys.modules["harness"].INSPECT, sys.modules["harness"].PROGRAM = INSPECT, PROGRAM
    unittest.main(module="__main__", argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)


class ProfileCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="annex-profile-")
        cls.dir = Path(cls.scratch.name)
        cls.program = make_raw.run(PROGRAM)
        cls.raw = cls.write("sample.raw", make_raw.sample(cls.program).text())

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @classmethod
    def write(cls, name: str, contents: str) -> Path:
        path = cls.dir / name
        path.write_text(contents)
        return path

    def annex(self, *arguments, inspect=None, **keywords) -> subprocess.CompletedProcess:
        clean = {name: value for name, value in os.environ.items() if "ANNEX" not in name}
        keywords = {"env": clean, "stdout": subprocess.PIPE, "text": True, **keywords}
        command = [inspect or INSPECT, "profile", *map(str, arguments)]
        return subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=120, **keywords)

    def output(self, *arguments, **keywords) -> str:
        result = self.annex(*arguments, **keywords)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def converted(self, format: str, *arguments, raw: Path | None = None) -> Path:
        path = self.dir / f"out.{format}"
        self.output("convert", raw or self.raw, "--to", format, "-o", path, *arguments)
        return path

    def refused(self, status: int, message: str, *arguments, **keywords):
        """That status, one line that has the words, and nothing on standard output."""
        result = self.annex(*arguments, **keywords)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertIn(message, result.stderr)
        self.assertTrue(result.stderr.startswith("annex: "), result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertFalse(result.stdout)
