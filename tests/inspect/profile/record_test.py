"""annex profile -- PROGRAM: what the program is given, what is made of the profiles that it leaves, the exit status. A
script stands for the launcher, and the programs write their raw files themselves, as the library does."""

import os
import pty
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import harness
import make_raw
from harness import ProfileCase

LAUNCHER = """#!/bin/sh
# run [--mode MODE] -- PROGRAM ARGUMENTS
echo "launched: $*" >> "$0.log"
while [ "$1" != -- ]; do shift; done
shift
command -v "$1" > /dev/null || { echo "annex: $1: no such program" >&2; exit 127; }
exec "$@"
"""

WRITE = 'sed "s/^pid .*/pid $$/" "$RAW" > "$(echo "$ANNEX_PROFILE" | sed "s/%p/$$/")"'


class RecordTest(ProfileCase):
    def setUp(self):
        self.house = self.dir / self.id().rsplit(".", 1)[1]
        self.house.mkdir()
        self.inspect = self.house / "annex-inspect"
        shutil.copy(harness.INSPECT, self.inspect)
        self.launcher = self.house / "annex"
        self.launcher.write_text(LAUNCHER)
        self.launcher.chmod(0o755)
        self.out = self.house / "out"
        self.out.mkdir()
        self.environment = {"PATH": os.environ["PATH"], "RAW": str(self.raw)}

    def record(self, *arguments, **keywords):
        return self.annex(*arguments, inspect=self.inspect, env=self.environment, **keywords)

    def shell(self, script, *options):
        return self.record("-o", self.out, *options, "--", "sh", "-c", script)

    def made(self):
        """What lies in the output's directory, without the process's number."""
        return sorted(re.sub(r"\d+", "PID", path.name) for path in self.out.iterdir())

    def launched(self):
        return Path(f"{self.launcher}.log").read_text()

    def test_a_program(self):
        result = self.shell(f"{WRITE}; echo $$ out; echo err >&2")
        process, word = result.stdout.split()
        self.assertEqual((result.returncode, word), (0, "out"))
        self.assertEqual(self.made(), ["annex.PID.html", "annex.PID.pb.gz", "annex.PID.raw"])
        for suffix in ("html", "pb.gz", "raw"):
            self.assertIn(f"{self.out}/annex.{process}.{suffix}", result.stderr)
        self.assertTrue(result.stderr.startswith("err\n"))
        self.assertRegex(result.stderr, r"\n 244\.1 KiB +92\.9 % +1  \(anonymous namespace\)::record_and_leave ")
        self.assertIn(f"sample[{process}] on Annex 0.1.0 shared", result.stderr)
        self.assertIn(f"sample[{process}]", (self.out / f"annex.{process}.html").read_text())
        self.assertNotIn("\033", result.stderr)

    def test_ten_sites(self):
        raw = make_raw.sample(self.program)
        raw.live += [f"{i} 7f00 100 112 1.000 1 1 112 1" for i in range(10, 25)]
        raw.sites += [f"{i} 0 1 1.000 100 0 0 0 0 0 0 0 0 0 0:{i:x}" for i in range(10, 25)]
        self.environment["RAW"] = str(self.write("many.raw", raw.text()))
        table = self.shell(WRITE).stderr.split("\n\n")[1].splitlines()
        self.assertEqual(len(table), 1 + 10)

    def test_what_the_launcher_is_given(self):
        words = ["[a,b]", "", "--mode", "--", "-o", "show", "a b", "*"]
        result = self.record("-o", self.out, "--mode", "solo", "--", "printf", "%s|", *words)
        self.assertEqual(result.stdout, "".join(f"{word}|" for word in words))
        self.assertIn("launched: run --mode solo -- printf %s| [a,b]", self.launched())

    def test_programs_named_as_commands(self):
        for name in ("diff", "show", "top", "convert"):
            program = self.house / name
            program.write_text('#!/bin/sh\necho "$0 $*"\n')
            program.chmod(0o755)
        self.environment["PATH"] = f"{self.house}:{os.environ['PATH']}"
        for name in ("diff", "show", "top", "convert"):
            result = self.record("-o", self.out, "--", name, "top", "diff")
            self.assertEqual(result.stdout, f"{self.house}/{name} top diff\n")

    def test_environment(self):
        show = "echo $ANNEX_PROFILE $ANNEX_PROFILE_RATE"
        self.assertEqual(self.shell(show).stdout, f"{self.out}/annex.%p.raw\n")
        for text, number in (("512K", 512 << 10), ("1M", 1 << 20), ("2G", 2 << 30), ("77", 77)):
            self.assertEqual(self.shell(show, "--rate", text).stdout, f"{self.out}/annex.%p.raw {number}\n")

    def test_where_the_files_go(self):
        script = f"cd /; {WRITE}"
        for given, made in (("out/x", "out/x"), ("x", "x"), ("new/", "new/annex"), (f"{self.out}/y", "out/y")):
            result = self.record("-o", given, "--", "sh", "-c", script, cwd=self.house)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(len(list(self.house.glob(f"{made}.*.pb.gz"))), 1, given)
        result = self.record("--", "sh", "-c", script, cwd=self.out)
        self.assertRegex(result.stderr, r"annex: annex\.\d+\.html is the page")

    def test_files_of_another_day_are_left_alone(self):
        old = self.out / "annex.77.raw"
        old.write_text("old")
        self.assertNotIn("annex.77", self.shell(WRITE).stderr)
        self.assertEqual(old.read_text(), "old")

    def test_children(self):
        child = f"sh -c '{WRITE}'"
        result = self.shell(f"{WRITE}; {child}; {child}")
        self.assertEqual(self.made().count("annex.PID.raw"), 3)
        self.assertEqual(self.made().count("annex.PID.html"), 1)
        self.assertEqual(len(re.findall(r"annex\.\d+\.raw: process \d+, which it started", result.stderr)), 2)

    def test_exit_status(self):
        for status in (0, 1, 42):
            self.assertEqual(self.shell(f"{WRITE}; exit {status}").returncode, status)
        self.assertEqual(self.shell(f"{WRITE}; kill -TERM $$").returncode, 128 + signal.SIGTERM)

    def test_no_profile(self):
        result = self.shell("exit 0")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(
            result.stderr, r"^annex: sh left no profile \(status 0\): it was killed, left by _exit, or .*\n$"
        )
        self.assertEqual(self.shell("exit 3").returncode, 3)
        result = self.shell("kill -KILL $$")
        self.assertIn("(status 137)", result.stderr)
        self.assertEqual(result.returncode, 137)

    def test_half_a_profile(self):
        result = self.shell(f"{WRITE}; sed -i '$ d' {self.out}/annex.*.raw")
        self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1))
        self.assertIn("ends in the middle", result.stderr)

    def test_the_launcher_says_why(self):
        result = self.record("-o", self.out, "--", "no-such-program")
        self.assertEqual((result.returncode, result.stderr), (127, "annex: no-such-program: no such program\n"))
        self.launcher.unlink()
        self.refused(1, f"{self.launcher}: No such file or directory", "--", "true", inspect=self.inspect)

    def test_wrong_arguments(self):
        for rate in ("0", "x", "12x", "512k", "-1", "K", "99999999999G"):
            self.refused(
                2, f"--rate: '{rate}' is no number of bytes", f"--rate={rate}", "--", "true", inspect=self.inspect
            )
        self.refused(2, "--rate: '' is no number of bytes", "--rate", "", "--", "true", inspect=self.inspect)
        self.refused(2, "profile needs a program", inspect=self.inspect)
        self.refused(2, "profile needs a program", "--attach", "1", "--", "true", inspect=self.inspect)
        self.refused(2, "--attach", "--attach", "self", inspect=self.inspect)
        self.refused(2, "'%' can't be in the path", "-o", "a%b", "--", "true", inspect=self.inspect)
        self.refused(2, "--frobnicate", "--frobnicate", "--", "true", inspect=self.inspect)

    def test_output_that_cannot_be_written(self):
        self.refused(1, "none: No such file or directory", "-o", "none/x", "--", "true", inspect=self.inspect)
        self.refused(1, "Not a directory", "-o", f"{self.raw}/x", "--", "true", inspect=self.inspect)

    def started(self, script, **keywords):
        command = [self.inspect, "profile", "-o", self.out, "--", "sh", "-c", script]
        return subprocess.Popen(command, env=self.environment, text=True, **keywords)

    def wait_for(self, name):
        end = time.monotonic() + 20
        while not (self.out / name).exists():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def test_signals_are_passed_on(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            name = signal.Signals(number).name[3:]
            trap = f"trap '{WRITE}; echo {name} >> {self.out}/got; exit 9' {name}"
            script = f"{trap}; echo > {self.out}/{name}; while :; do sleep 0.05; done"
            running = self.started(script, stderr=subprocess.DEVNULL)
            self.wait_for(name)
            running.send_signal(number)
            self.assertEqual(running.wait(20), 9)
        self.assertEqual((self.out / "got").read_text().split(), ["TERM", "INT", "HUP"])

    def terminal(self, script, key=None):
        """On a terminal of its own, with a key pressed when the program is ready: status, what it shows."""
        process, terminal = pty.fork()
        if process == 0:
            os.execve(self.inspect, ["annex", "profile", "-o", self.out, "--", "sh", "-c", script], self.environment)
        if key:
            self.wait_for("ready")
            os.write(terminal, key)
        shown = b""
        while True:
            try:
                part = os.read(terminal, 4096)
            except OSError:  # nobody has the other end any more
                break
            shown += part
        os.close(terminal)
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), shown.decode()

    def test_a_key_of_the_terminal_comes_once(self):
        count = f"import signal, time; signal.signal(2, lambda *_: open('{self.out}/got', 'a').write('int\\n'));"
        count += f"open('{self.out}/ready', 'w'); time.sleep(0.8)"
        status, shown = self.terminal(f'{WRITE}; exec python3 -c "{count}"', b"\x03")
        self.assertEqual(status, 0, shown)
        self.assertEqual((self.out / "got").read_text(), "int\n")

    def test_progress_on_a_terminal(self):
        _status, shown = self.terminal(f"sleep 1.3; {WRITE}")
        self.assertRegex(shown, r"\r\x1b\[Kannex: profiling process \d+: 1 s, \d+\.\d [KM]iB resident")
        self.assertIn("resident\r\033[Ksample[", shown)  # and the line is gone


if __name__ == "__main__":
    harness.main()
