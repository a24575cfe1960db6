"""annex stats and annex trim on running processes: process_test.py TOOL PROGRAM LINKED LIBRARY...

PROGRAM is known_blocks.c; LINKED the same, with Annex's static library in it. What is seen from outside is compared
with what the process says of itself, and every way in which a process can't be looked into has one line and its status.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from target import PATIENCE, Program, inspect, inspect_json, state_of, wait_for

TOOL = PROGRAM = LINKED = None
LIBRARIES = []
NOBODY = 65534
FAILED, USAGE, NO_ANNEX, NOT_ALLOWED, NO_PROCESS = 1, 2, 3, 4, 5

# Of annex_stats.
SAME = [
    "committed",
    "metadata",
    "used",
    "used_spans",
    "slabs",
    "dirty",
    "peak_in_use",
    "purged_total",
    "huge_page_bytes",
    "heaps",
    "arenas",
    "slab_refills",
    "remote_batches",
]
KEPT = {"ANNEX_PURGE_DELAY": "3600000"}


def parent_of(process: Path) -> str:
    try:
        return (process / "stat").read_text().split()[3]
    except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
        return ""


class Inspected(unittest.TestCase):
    def assert_near(self, seen, said, what):
        self.assertLessEqual(abs(seen - said), max(said / 100, 2), f"{what}: {seen} seen, {said} said")

    def assert_refused(self, status, words, *arguments, **options):
        result = inspect(TOOL, *arguments, **options)
        self.assertEqual(result.returncode, status, result.stderr + result.stdout)
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertTrue(lines[0].startswith("annex: "), lines)
        for word in words:
            self.assertIn(word, lines[0])
        self.assertEqual(result.stdout, "")


class StatsTest(Inspected):
    def in_peace(self, program):
        """What is seen, and what is said before and after: a support thread may be at work in between."""

        def look():
            before = program.stats()
            seen = inspect_json(TOOL, "stats", program.pid, "--json")
            after = program.stats()
            before["support_cpu_us"] = after["support_cpu_us"]
            return (seen, after) if before == after else None

        return wait_for("two looks without a change in between", look)

    def test_totals_are_what_the_process_says(self):
        for library in LIBRARIES:
            with self.subTest(library.name), Program(PROGRAM, library, **KEPT) as program:
                for word in ("blocks", "threads", "free"):
                    self.assertEqual(program.do(word), "done")
                    seen, said = self.in_peace(program)
                    for name in SAME:
                        self.assert_near(seen[name], said[name], f"{name} after {word}")
                    self.assertEqual(seen["version"], said["version"])
                    self.assertEqual(seen["unclear_granules"], 0)

    def test_tables_add_up_to_the_totals(self):
        for library in LIBRARIES:
            with self.subTest(library.name), Program(PROGRAM, library, **KEPT) as program:
                program.do("blocks")
                program.do("threads")
                seen = inspect_json(TOOL, "stats", program.pid, "--json")
                classes, heaps = seen["classes"], [*seen["thread_heaps"], seen["slabs_of_no_heap"]]
                small = seen["used"] - seen["used_spans"]
                self.assertEqual(sum(row["used_bytes"] for row in classes), small)
                self.assertEqual(sum(row["slab_bytes"] for row in classes), seen["slabs"])
                self.assertEqual(sum(heap["used_bytes"] for heap in heaps), small)
                self.assertEqual(sum(heap["slab_bytes"] for heap in heaps), seen["slabs"])
                self.assertEqual(sum(row["free_touched_bytes"] for row in classes), seen["free_touched"])
                self.assertEqual(seen["free_in_slabs"], seen["slabs"] - small)
                for row in classes:
                    self.assertLessEqual(row["used_blocks"] + row["hole_blocks"], row["made_blocks"])
                    self.assertLessEqual(row["made_blocks"], row["blocks"])
                # 75,000 blocks of 100 bytes are left, and some thousands may lie ready in lists and magazines.
                rows = {row["block_bytes"]: row for row in classes}
                used = rows[112]["used_blocks"]
                self.assertTrue(75000 <= used <= 80000, used)
                self.assertEqual(seen["spans"], 64)
                self.assertEqual(seen["pid"], program.pid)
                self.assertEqual(seen["program"], Path(PROGRAM).name[:15])

    def test_threads_have_their_heaps(self):
        for library in LIBRARIES:
            with self.subTest(library.name), Program(PROGRAM, library, **KEPT) as program:
                program.do("blocks")
                program.do("threads")
                seen = inspect_json(TOOL, "stats", program.pid, "--json")
                threads = {int(name) for name in os.listdir(f"/proc/{program.pid}/task")}
                heaps = seen["thread_heaps"]
                held = {heap["thread"] for heap in heaps if heap["holder"] == "thread"}
                self.assertLessEqual(held, threads)
                self.assertEqual(len(held), 2, heaps)
                ended = [heap for heap in heaps if heap["holder"] == "ended"]
                self.assertEqual(len(ended), 1, heaps)
                # 10,000 blocks of 300 bytes.
                self.assertTrue(3_000_000 <= ended[0]["used_bytes"] <= 3_500_000, ended)

    def test_text_has_the_same(self):
        with Program(PROGRAM, LIBRARIES[0]) as program:
            program.do("blocks")
            result = inspect(TOOL, "stats", program.pid)
            self.assertEqual(result.returncode, 0, result.stderr)
            for words in (f"({program.pid}), annex 0.", "fragmentation", "MiB", "slabs hold", "thread"):
                self.assertIn(words, result.stdout)

    def test_a_stopped_process_is_read(self):
        with Program(PROGRAM, LIBRARIES[0], **KEPT) as program:
            program.do("blocks")
            said = program.stats()
            os.kill(program.pid, signal.SIGSTOP)
            wait_for("the stop", lambda: state_of(program.pid) == "T")
            self.assert_near(inspect_json(TOOL, "stats", program.pid, "--json")["used"], said["used"], "used")
            self.assertEqual(state_of(program.pid), "T")
            self.assert_refused(FAILED, ["has asked for memory within 0.3 s"], "trim", program.pid, "--timeout", "0.3")
            os.kill(program.pid, signal.SIGCONT)
            # It was asked no more: nothing is given back later.
            before = program.stats()["purged_total"]
            program.do("allocate")
            self.assertEqual(program.stats()["purged_total"], before)

    def test_a_thread_s_number_will_do(self):
        with Program(PROGRAM, LIBRARIES[0]) as program:
            program.do("threads")
            thread = max(int(name) for name in os.listdir(f"/proc/{program.pid}/task"))
            self.assertNotEqual(thread, program.pid)
            self.assertEqual(inspect_json(TOOL, "stats", thread, "--json")["pid"], program.pid)

    def test_a_static_program_is_read(self):
        with Program(LINKED, **KEPT) as program:
            program.do("blocks")
            seen = inspect_json(TOOL, "stats", program.pid, "--json")
            self.assert_near(seen["used"], program.stats()["used"], "used")

    def test_a_stripped_and_deleted_program_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "stripped"
            subprocess.run(["strip", "-o", copy, LINKED], check=True)
            library = Path(folder) / "libannex.so.0"
            library.write_bytes(LIBRARIES[0].read_bytes())
            with Program(copy) as linked, Program(PROGRAM, library) as preloaded:
                copy.unlink()
                library.unlink()
                for program in (linked, preloaded):
                    program.do("blocks")
                    self.assertGreater(inspect_json(TOOL, "stats", program.pid, "--json")["used"], 10_000_000)

    def test_heaps_are_read_while_they_change(self):
        for library in LIBRARIES:
            with self.subTest(library.name), Program(PROGRAM, library) as program:
                program.do("churn")
                for _ in range(30):
                    seen = inspect_json(TOOL, "stats", program.pid, "--json")
                    self.assertLess(seen["used"], 1 << 30)
                    self.assertLessEqual(seen["used"] - seen["used_spans"], seen["slabs"])


class TrimTest(Inspected):
    def test_memory_goes_back(self):
        for library in LIBRARIES:
            with self.subTest(library.name), Program(PROGRAM, library, **KEPT) as program:
                program.do("blocks")
                program.do("free")
                before = program.stats()["purged_total"]
                trim = subprocess.Popen(
                    [TOOL, "trim", str(program.pid), "--timeout", str(PATIENCE)], stdout=subprocess.PIPE, text=True
                )
                while trim.poll() is None:
                    program.do("allocate")
                    time.sleep(0.01)
                said = trim.stdout.read()
                trim.stdout.close()
                self.assertEqual(trim.returncode, 0)
                self.assertRegex(said, r"resident memory \d+\.\d+ MiB -> \d+\.\d+ MiB \(-\d")
                self.assertGreater(program.stats()["purged_total"] - before, 5_000_000)

    def test_an_idle_process_has_one_line(self):
        with Program(PROGRAM, LIBRARIES[0]) as program:
            self.assert_refused(FAILED, [str(program.pid), "0.2 s"], "trim", program.pid, "--timeout", "0.2")

    def test_nobody_else_is_asking(self):
        with Program(PROGRAM, LIBRARIES[0]) as program:
            first = subprocess.Popen([TOOL, "trim", str(program.pid), "--timeout", "5"], stderr=subprocess.PIPE)
            try:

                def refused():
                    result = inspect(TOOL, "trim", program.pid, "--timeout", "0")
                    return "asked for something already" in result.stderr and result.returncode == FAILED

                wait_for("the second to be refused", refused)
            finally:
                first.kill()
                first.wait()
                first.stderr.close()


class RefusalTest(Inspected):
    def test_no_such_process(self):
        for command in ("stats", "top", "trim"):
            once = ["--once"] if command == "top" else []
            self.assert_refused(NO_PROCESS, ["there is no process 4194305"], command, 4194305, *once)

    def test_wrong_arguments(self):
        for arguments in (
            ["stats"],
            ["stats", "x"],
            ["stats", "0"],
            ["stats", "-5"],
            ["top", "1"],
            ["top", "1", "--once", "--by", "x"],
            ["trim", "1", "--timeout", "x"],
            ["stats", "1", "2"],
        ):
            with self.subTest(arguments):
                self.assert_refused(USAGE, [], *arguments)

    def test_without_annex(self):
        with Program(PROGRAM) as program:
            self.assert_refused(NO_ANNEX, ["does not run on Annex"], "stats", program.pid)

    def test_a_zombie(self):
        child = subprocess.Popen(["true"])
        wait_for("its end", lambda: state_of(child.pid) == "Z")
        self.assert_refused(NO_PROCESS, ["zombie"], "stats", child.pid)
        child.wait()

    def test_a_kernel_thread(self):
        threads = [path for path in Path("/proc").glob("[0-9]*") if parent_of(path) == "2"]
        if not threads:
            self.skipTest("no kernel threads are seen here")
        self.assert_refused(NO_ANNEX, ["the kernel's"], "stats", threads[0].name)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to be another user")
    def test_another_user_s(self):
        with Program(PROGRAM, LIBRARIES[0]) as program:
            self.assert_refused(
                NOT_ALLOWED,
                ["another user", "root", "/proc/sys/kernel/yama/ptrace_scope"],
                "stats",
                program.pid,
                user=NOBODY,
            )

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to be another user")
    def test_not_dumpable(self):
        with Program(PROGRAM, LIBRARIES[0], user=NOBODY) as program:
            self.assertEqual(inspect(TOOL, "stats", program.pid, user=NOBODY).returncode, 0)
            program.do("hide")
            self.assert_refused(NOT_ALLOWED, ["PR_SET_DUMPABLE", "only root"], "stats", program.pid, user=NOBODY)
            self.assertEqual(inspect(TOOL, "stats", program.pid).returncode, 0, "root may")

    def test_another_version(self):
        # The layout number follows the magic text: another one, in a copy of the library.
        magic = b"annex-inspection"
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "libannex.so.0"
            data = bytearray(LIBRARIES[0].read_bytes())
            found = [at for at in range(len(data)) if data.startswith(magic, at)]
            self.assertEqual(len(found), 1)
            data[found[0] + len(magic)] ^= 1
            library.write_bytes(data)
            with Program(PROGRAM, library) as program:
                self.assert_refused(NO_ANNEX, ["another version of Annex", "0.1.0 shared"], "stats", program.pid)

    def test_full_output(self):
        with Program(PROGRAM, LIBRARIES[0]) as program, open("/dev/full", "w") as full:
            result = subprocess.run([TOOL, "stats", str(program.pid)], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual(result.returncode, FAILED)
            self.assertIn("annex: standard output: No space left", result.stderr)

    def test_top_without_a_terminal(self):
        with Program(PROGRAM, LIBRARIES[0]) as program:
            self.assert_refused(USAGE, ["needs a terminal, or --once or --json"], "top", program.pid)
            once = inspect(TOOL, "top", program.pid, "--once")
            self.assertEqual(once.returncode, 0, once.stderr)
            self.assertNotIn("\033", once.stdout)
            seen = inspect_json(TOOL, "top", program.pid, "--once", "--json", "--by", "thread")
            self.assertEqual((seen["schema"], seen["by"], seen["used_growth"]), ("annex-top/1", "thread", None))
            self.assertEqual(seen["stats"]["schema"], "annex-stats/1")
            self.assertEqual(seen["rows"][0]["name"], f"{program.pid} known-blocks")


if __name__ == "__main__":
    TOOL, PROGRAM, LINKED, *libraries = map(Path, sys.argv[1:])
    LIBRARIES = libraries
    unittest.main(argv=sys.argv[:1])
