"""The raw profile of a running process: attach_test.py TOOL PROGRAM LIBRARY...

The profile is the test's own, written into the process (raw_profile.cpp), so that every line of the text is known:
which samples are still in use, and how many blocks in use lie on their pages.
"""

import sys
import unittest

from target import Program, inspect

TOOL = PROGRAM = None
LIBRARIES = []
PAGE = 4096


class AttachTest(unittest.TestCase):
    def lines(self, program, *words):
        result = inspect(TOOL, program.pid, *words)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [line.split(" ") for line in result.stdout.splitlines()]

    def test_every_line(self):
        for library in LIBRARIES:
            with self.subTest(library), Program(PROGRAM, library) as program:
                room, span, untouched, *blocks = program.do("sample").split()
                addresses = [int(block, 16) for block in blocks]
                used = addresses[0::2]
                lines = self.lines(
                    program,
                    "forge",
                    room,
                    f"{span}:200000:200704",
                    f"{untouched}:30000:30720",
                    *(f"{block}:1000:1024" for block in blocks),
                )
                kinds = list(dict.fromkeys(line[0] for line in lines))
                self.assertEqual(
                    kinds,
                    [
                        "annex-profile",
                        "pid",
                        "program",
                        "version",
                        "began",
                        "written",
                        "rate",
                        "page",
                        "stat",
                        "class",
                        "module",
                        "label",
                        "site",
                        "live",
                        "end",
                    ],
                )
                said = program.stats()
                one = {line[0]: line[1:] for line in lines}
                self.assertEqual(one["annex-profile"], ["1"])
                self.assertEqual(one["pid"], [str(program.pid)])
                self.assertEqual(" ".join(one["version"]), said["version"])
                self.assertEqual(one["began"], ["1234"])
                self.assertEqual(one["rate"], ["4096"])
                stats = {line[1]: int(line[2]) for line in lines if line[0] == "stat"}
                names = {name for name in said if name not in ("pid", "version")}
                self.assertEqual(set(stats), names | {"resident", "peak_resident", "dropped"})
                for name in ("used", "slabs", "used_spans"):
                    self.assertLessEqual(abs(stats[name] - said[name]), said[name] / 100, name)
                self.assertEqual(one["module"], ["1", "10000", "20000", "1000", "ab01", "/a", "b\\\\c\\nd"])
                self.assertEqual(one["label"], ["1", "key", "some\\svalue"])
                # Ten were freed, and 32 samples of 1.25 blocks are found to be, some time after the system's start.
                *counts, freed = one["site"][:6]
                lifetimes = [float(count) for count in one["site"][6:14]]
                self.assertEqual(counts, ["1", "1", "3", "30.500", "30500"])
                self.assertEqual(freed, "50.000")
                self.assertEqual((sum(lifetimes), lifetimes[2]), (50, 10))
                self.assertEqual(one["site"][14:], ["1:10010", "0:777"])
                live = {int(line[2], 16): line for line in lines if line[0] == "live"}
                self.assertEqual(set(live), {int(span, 16), int(untouched, 16), *used}, "those that are in use")
                for address, line in live.items():
                    _, site, _, asked, size, weight, age, thread, resident, shares = line
                    self.assertEqual((site, weight, thread), ("1", "1.250", "77"))
                    self.assertGreater(int(age), 0)
                    if address == int(span, 16):
                        self.assertEqual((asked, size, shares), ("200000", "200704", "-"))
                        self.assertTrue(200000 <= int(resident) <= 200704, line)
                        continue
                    if address == int(untouched, 16):
                        # Its first page, and what the hardened flavour looks at.
                        self.assertLessEqual(int(resident), 3 * PAGE, line)
                        continue
                    self.assertEqual((asked, size, resident), ("1000", "1024", "1024"))
                    pages = range(address // PAGE, (address + 1023) // PAGE + 1)
                    expected = [
                        sum(block // PAGE <= page <= (block + 1023) // PAGE for block in used) for page in pages
                    ]
                    self.assertEqual([int(share) for share in shares.split(",")], expected)

    def test_an_idle_process_begins_no_profile(self):
        with Program(PROGRAM, LIBRARIES[0]) as program:
            result = inspect(TOOL, program.pid, "0")
            self.assertEqual(result.returncode, 1)
            self.assertIn("has begun no profile: none of its threads has asked for memory within 5 s", result.stderr)


if __name__ == "__main__":
    TOOL, PROGRAM, *LIBRARIES = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
