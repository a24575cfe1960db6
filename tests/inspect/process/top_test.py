"""annex top in a terminal, which tmux is: top_test.py TOOL PROGRAM LIBRARY

Keys, sizes, and every way in which it ends: the terminal is as it was before, and the shell in it goes on.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from target import Program, inspect_json, wait_for

TOOL = PROGRAM = LIBRARY = None


class Screen:
    """A terminal with a shell in it."""

    def __init__(self, columns=120, rows=30):
        self.folder = tempfile.TemporaryDirectory(prefix="annex-top-")
        self.socket = str(Path(self.folder.name) / "tmux")
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), "env PS1='shell$ ' sh")
        wait_for("the shell", lambda: "shell$" in self.text())

    def tmux(self, *arguments):
        environment = {name: value for name, value in os.environ.items() if name != "TMUX"}
        environment["TERM"] = "xterm"
        return subprocess.run(
            ["tmux", "-S", self.socket, *arguments],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
            timeout=60,
        ).stdout

    def text(self):
        return self.tmux("capture-pane", "-p")

    def type(self, *keys):
        self.tmux("send-keys", *keys)

    def command(self, line):
        self.type(line, "Enter")

    def value(self, name):
        return self.tmux("display-message", "-p", f"#{{{name}}}").strip()

    def wait_for(self, *words):
        try:
            wait_for(" and ".join(words), lambda: all(word in self.text() for word in words))
        except AssertionError:
            raise AssertionError(f"{words} are not in:\n{self.text()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tmux("kill-server")
        self.folder.cleanup()


class TopTest(unittest.TestCase):
    def setUp(self):
        self.program = Program(PROGRAM, LIBRARY)
        self.addCleanup(self.program.__exit__)
        self.program.do("blocks")
        self.screen = Screen()
        self.addCleanup(self.screen.__exit__)
        self.top = f"{TOOL} top {self.program.pid} --interval 0.1"

    def start(self, options=""):
        self.screen.command(f"cd {self.screen.folder.name}; stty -a > before; echo above; {self.top} {options}")
        self.screen.wait_for(f"annex top: known-blocks ({self.program.pid})")

    def assert_restored(self):
        screen = self.screen
        screen.wait_for("above")  # the first screen is back, with what stood there
        self.assertEqual(screen.value("alternate_on"), "0")
        self.assertEqual(screen.value("cursor_flag"), "1")
        screen.command("stty -a > after; echo status $?.")
        screen.wait_for("status 0.")
        folder = Path(screen.folder.name)
        self.assertEqual((folder / "before").read_text(), (folder / "after").read_text())

    def test_keys(self):
        self.start()
        self.screen.wait_for("by class", "block", "1024", "live grows")
        self.assertEqual(self.screen.value("alternate_on"), "1")
        self.assertEqual(self.screen.value("cursor_flag"), "0")
        self.screen.type("t")
        self.screen.wait_for("by thread", f"{self.program.pid} known-blocks")
        self.screen.type("s")
        self.screen.wait_for("by site", "no profile is on")
        self.screen.type("x", "c")
        self.screen.wait_for("by class", "1024")
        self.screen.type("q")
        self.assert_restored()

    def test_it_refreshes(self):
        self.start()
        self.screen.wait_for("heaps 1", "+0.00 MiB/s")
        self.program.do("threads")
        self.screen.wait_for("heaps 3")
        self.screen.type("q")

    def test_the_interrupt_key(self):
        self.start("--by thread")
        self.screen.wait_for("by thread")
        self.screen.type("C-c")
        self.assert_restored()

    def test_it_is_ended(self):
        self.start()
        pid = subprocess.run(["pgrep", "-f", f"^{self.top}"], capture_output=True, text=True, check=True).stdout.split()
        os.kill(int(pid[0]), 15)
        self.assert_restored()

    def test_it_is_left_for_a_while(self):
        self.start()
        self.screen.type("C-z")
        self.screen.wait_for("above", "shell$ ")
        self.assertEqual(self.screen.value("alternate_on"), "0")
        self.screen.command("fg")
        wait_for("it to be back", lambda: self.screen.value("alternate_on") == "1")
        self.screen.wait_for("annex top:", "by class")
        self.screen.type("q")
        self.assert_restored()

    def test_the_process_ends(self):
        self.start()
        self.program.process.kill()
        self.program.process.wait()
        self.screen.wait_for("annex: ", "above")
        self.assert_restored()

    def test_sizes(self):
        self.start()
        self.screen.tmux("resize-window", "-x", "40", "-y", "6")
        wait_for("few lines", lambda: all(len(line) <= 40 for line in self.screen.text().splitlines()))
        self.screen.wait_for("annex top: known-blocks", "by class")
        self.assertEqual(self.screen.value("history_size"), "0", "nothing has scrolled")
        self.screen.tmux("resize-window", "-x", "150", "-y", "40")
        self.screen.wait_for("live grows")
        self.screen.type("q")

    def test_a_stream_of_json(self):
        with subprocess.Popen(
            [TOOL, "top", str(self.program.pid), "--json", "--interval", "0.1"], stdout=subprocess.PIPE, text=True
        ) as top:
            first = top.stdout.readline()
            self.program.do("threads")
            lines = [first, *(top.stdout.readline() for _ in range(3))]
            top.terminate()
            for line in lines:
                self.assertTrue(line.startswith('{"schema":"annex-top/1"'), line)
        self.assertTrue(inspect_json(TOOL, "top", self.program.pid, "--once", "--json")["rows"])


if __name__ == "__main__":
    if shutil.which("tmux") is None:
        raise SystemExit("tmux is not here (tools/install-deps tools/apt-test.txt)")
    TOOL, PROGRAM, LIBRARY = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
