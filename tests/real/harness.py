"""Runs a real program's work on the C library's allocator and then on Annex, and compares what came out.

A test file defines work(on), which starts programs through `on` and returns its results by name; main(work) does
the rest: once for the C library's allocator, then for each flavour. All passes see the same paths, so outputs that
name files agree too. A pass on Annex counts only where Annex is proved to have served: the library writes its
statistics as each process exits, and a server is looked at in /proc while it runs. Exit status: 0 passed, 1 failed, 77
a program is not installed (an error where ANNEX_REQUIRE_ALL is set).
"""

import argparse
import contextlib
import difflib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SKIPPED = 77
PATH = "/usr/bin:/bin:/usr/sbin:/sbin"  # the release's own programs, whatever else this machine has
LIBRARIES = {
    "shared": "libannex.so",
    "solo": "libannex-solo.so",
    "offload": "libannex-offload.so",
    "hardened": "libannex-hardened.so",
}
INPUTS = Path(__file__).resolve().parent / "inputs"
SOURCE_ROOT = Path(__file__).resolve().parent.parent.parent


class Failure(Exception):
    """A program went wrong, or its output differs; the text tells all there is to know."""


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err


class On:
    """One pass of the work, on one allocator; `library` is None for the C library's own."""

    def __init__(self, name, library, scratch):
        self.name, self.library = name, library
        self.dir = scratch / "work"  # the same path in each pass
        self.statistics = scratch / f"statistics-{name}"
        self.seen_in_maps = 0
        shutil.rmtree(self.dir, ignore_errors=True)
        self.dir.mkdir()
        self.statistics.mkdir()

    def environment(self, extra=None, plain=False):
        env = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD" and not key.startswith("ANNEX_")}
        env.update({"PATH": PATH, "LC_ALL": "C.UTF-8", "TZ": "UTC", "HOME": str(self.dir)})
        if self.library and not plain:
            env["LD_PRELOAD"] = str(self.library)
            env["ANNEX_STATS"] = "json"
            env["ANNEX_STATS_FILE"] = str(self.statistics / "%p")
        env.update(extra or {})
        return env

    def run(self, command, input=None, env=None, timeout=60, status=0, plain=False):
        """Runs a command to its end. Fails where its status is not the expected one (None: any will do). A plain run is
        on the C library's allocator in either pass."""
        command = [str(word) for word in command]
        data = input.encode() if isinstance(input, str) else input
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL if data is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.dir,
            env=self.environment(env, plain),
            start_new_session=True,
        )
        try:
            out, err = process.communicate(data, timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            _, err = process.communicate()
            raise Failure(f"{self.told(command)}: not done after {timeout} s\n{tail(err)}")
        if status is not None and process.returncode != status:
            raise Failure(f"{self.told(command)}: {outcome(process.returncode)}\n{tail(err or out)}")
        if b"annex:" in err:
            raise Failure(f"{self.told(command)}: the library complained\n{tail(err)}")
        return Result(process.returncode, out, err)

    @contextlib.contextmanager
    def server(self, command, ready, env=None, stop=signal.SIGTERM):
        """Runs a server for the length of a with block: waits until ready() is true, checks that it runs on the
        library, and stops it at the end, when it must go with status 0."""
        command = [str(word) for word in command]
        log = self.dir / "server.log"
        with open(log, "wb") as out:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=self.dir,
                env=self.environment(env),
                start_new_session=True,
            )
        try:
            deadline = time.monotonic() + 30
            while not ready():
                if process.poll() is not None:
                    raise Failure(f"{self.told(command)}: {outcome(process.returncode)}\n{tail(log.read_bytes())}")
                if time.monotonic() > deadline:
                    raise Failure(f"{self.told(command)}: does not answer\n{tail(log.read_bytes())}")
                time.sleep(0.02)
            self.check_maps(process.pid)
            try:
                yield process
            except Exception as error:
                if process.poll() is None:
                    raise
                why = f"{self.told(command)}: {outcome(process.returncode)}\n{tail(log.read_bytes())}"
                raise Failure(f"{why}\n{type(error).__name__}: {error}") from error
            process.send_signal(stop)
            try:
                code = process.wait(30)
            except subprocess.TimeoutExpired:
                raise Failure(f"{self.told(command)}: does not stop\n{tail(log.read_bytes())}")
            if code != 0 or b"annex:" in log.read_bytes():
                raise Failure(f"{self.told(command)}: {outcome(code)} at the end\n{tail(log.read_bytes())}")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def check_maps(self, pid):
        """The library is in that process, and in none of the baseline's."""
        loaded = "libannex" in Path(f"/proc/{pid}/maps").read_text()
        if loaded != bool(self.library):
            raise Failure(f"void: process {pid} on {self.name}: library {'loaded' if loaded else 'not loaded'}")
        self.seen_in_maps += loaded

    def served(self):
        """How many processes left statistics, each showing that the library handed out memory."""
        count = 0
        for file in self.statistics.iterdir():
            for line in file.read_text().splitlines():  # of each process that had that number
                try:
                    numbers = json.loads(line)
                except ValueError as error:
                    raise Failure(f"statistics of process {file.name} are not JSON: {error}\n{line}")
                count += numbers.get("slab_refills", 0) > 0
        return count

    def told(self, command):
        shown = " ".join(command)
        return f"on {self.name}: {shown if len(shown) < 300 else shown[:300] + '...'}"


def outcome(status):
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


def tail(data, lines=40):
    """The end of a program's output, indented."""
    text = data.decode(errors="replace") if isinstance(data, bytes) else data
    return "\n".join("    | " + line[:500] for line in text.splitlines()[-lines:])


def difference(name, expected, got):
    if isinstance(expected, bytes) and isinstance(got, bytes):
        try:
            expected, got = expected.decode(), got.decode()
        except UnicodeDecodeError:
            return f"{name}: {len(expected)} bytes expected, {len(got)} bytes other than these came out"
    if isinstance(expected, str) and isinstance(got, str):
        lines = difflib.unified_diff(expected.splitlines(), got.splitlines(), "glibc", "Annex", lineterm="", n=1)
        return f"{name} differs:\n" + tail("\n".join(list(lines)[:40]))
    return f"{name}: {expected!r} expected, {got!r} came out"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port):
    """A ready() for server(): whether something accepts connections on a loopback port."""

    def ready():
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        return False

    return ready


def main(work, programs=(), processes=1):
    """Runs the test. `programs` must be installed; at least `processes` processes must have been served by Annex."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, required=True, help="directory of the libraries")
    parser.add_argument("--flavours", choices=LIBRARIES, nargs="+", required=True)
    arguments = parser.parse_args()
    missing = [program for program in programs if shutil.which(program, path=PATH) is None]
    if missing:
        print(f"not installed: {' '.join(missing)} (tools/install-deps tools/apt.txt tools/apt-test.txt)")
        sys.exit(1 if os.environ.get("ANNEX_REQUIRE_ALL") else SKIPPED)
    failed = False
    with tempfile.TemporaryDirectory(prefix="annex-real-", ignore_cleanup_errors=True) as scratch:

        def results(name, library):
            on = On(name, library, Path(scratch))
            started = time.monotonic()
            found = work(on)
            print(f"{name}: {time.monotonic() - started:.2f} s")
            return on, found

        try:
            _, expected = results("glibc", None)
        except Failure as failure:
            print(f"FAILED {failure}")
            sys.exit(1)
        for flavour in arguments.flavours:
            try:
                library = (arguments.build / LIBRARIES[flavour]).resolve()
                if not library.exists():
                    raise Failure(f"{library} is not built")
                compare(*results(flavour, library), expected, processes)
            except Failure as failure:
                print(f"FAILED {failure}")
                failed = True
    sys.exit(1 if failed else 0)


def compare(on, got, expected, processes):
    """What came out is what is expected, and it was on Annex that it did."""
    wrong = [difference(key, value, got.get(key)) for key, value in expected.items() if got.get(key) != value]
    if wrong:
        raise Failure(f"on {on.name}: " + "\n".join(wrong))
    served = on.served()
    if served < processes:
        raise Failure(f"on {on.name}: void: {served} processes ran on the library, at least {processes} expected")
    print(f"{len(expected)} results equal; processes served by Annex: {served}, seen in /proc: {on.seen_in_maps}")
