"""Every message and exit status of the launcher: launcher_test.py LAUNCHER C++-COMPILER.

The launcher is copied into directories of the test's own, beside a stand-in for the library, so that what is tested
is the launcher alone.
"""

import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

LAUNCHER = COMPILER = None  # from the command line

ELF64, ELF32 = 2, 1
X86_64, AARCH64 = 62, 183
MACHINE = {"x86_64": X86_64, "aarch64": AARCH64}[os.uname().machine]


def elf_header(word=ELF64, machine=MACHINE, interpreter=b""):
    """The beginning of an ELF executable: enough for anyone who only looks at it."""
    ident = b"\x7fELF" + bytes([word, 1, 1]) + bytes(9)
    segments = 1 if interpreter else 0
    header = ident + struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, 0, 64, 0, 0, 64, 56, segments, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 3, 4, 120, 0, 0, len(interpreter) + 1, 0, 1)  # PT_INTERP
    return header + segment * segments + interpreter + b"\0"


class LauncherTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="annex-launcher-")
        cls.dir = Path(cls.scratch.name)
        cls.stand_in = cls.dir / "stand_in.so"
        cls.compile("int annex_stand_in;", cls.stand_in, "-shared", "-fPIC")
        cls.annex = cls.house("house", "libannex.so", "libannex-solo.so")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @classmethod
    def compile(cls, source, output, *flags):
        command = [COMPILER, "-x", "c++", "-", "-o", str(output), *flags]
        subprocess.run(command, input=source.encode(), check=True)

    @classmethod
    def house(cls, directory, *libraries):
        """A directory with a copy of the launcher and stand-ins for libraries; returns the launcher."""
        place = cls.dir / directory
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(LAUNCHER, place / "annex")
        for library in libraries:
            (place / library).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(cls.stand_in, place / library)
        return place / "annex"

    def file(self, name, contents, mode=0o755):
        path = self.dir / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
        path.chmod(mode)
        return path

    def launch(self, *arguments, annex=None, environment=None, directory=None, stdout=subprocess.PIPE):
        clean = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD" and "ANNEX" not in name}
        clean.update(environment or {})
        return subprocess.run(
            [annex or self.annex, *arguments],
            env=clean,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
        )

    def refused(self, status, message, *arguments, **keywords):
        """The launcher ends with that status, one line that has the words, and nothing on standard output."""
        result = self.launch(*arguments, **keywords)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertIn(message, result.stderr)
        self.assertTrue(result.stderr.startswith("annex: "), result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertEqual(result.stdout, "")

    def ran(self, *arguments, **keywords):
        result = self.launch(*arguments, **keywords)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    # What it prints

    def test_help(self):
        for arguments in (["--help"], ["-h"], ["help"], ["help", "run"], ["run", "--help"], ["run", "-h"]):
            self.assertTrue(self.ran(*arguments).startswith("Usage: annex run "), arguments)

    def test_help_fits_a_terminal(self):
        for arguments in (["--help"], ["help", "env"]):
            for line in self.ran(*arguments).splitlines():
                self.assertLess(len(line), 80, line)

    def test_help_env_lists_every_option_of_the_library(self):
        table = Path(__file__).parent.parent / "src/os/options.def"
        text = self.ran("help", "env")
        names = [line.split('"')[1] for line in table.read_text().splitlines() if line.startswith("ANNEX_OPTION(")]
        self.assertGreater(len(names), 5)
        for name in names:
            self.assertIn(f"\n  {name}  (default: ", text)

    def test_version(self):
        self.assertRegex(self.ran("--version"), r"^annex \d+\.\d+\.\d+( \(\S+\))?\n$")
        self.assertEqual(self.ran("version"), self.ran("--version"))

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w") as full:
            result = self.launch("--help", stdout=full)
        self.assertEqual((result.returncode, result.stderr), (1, "annex: standard output: No space left on device\n"))

    # Wrong usage: 2

    def test_no_arguments(self):
        result = self.launch()
        self.assertEqual(result.returncode, 2)
        self.assertTrue(result.stderr.startswith("Usage: annex run "))

    def test_wrong_usage(self):
        self.refused(2, "unknown command: frobnicate", "frobnicate")
        self.refused(2, "no help about cooking", "help", "cooking")
        self.refused(2, "run needs a command", "run")
        self.refused(2, "run needs a command", "run", "--stats", "--")
        self.refused(2, "unknown option of run: --fast", "run", "--fast", "true")
        self.refused(2, "--mode needs a value", "run", "--mode")
        self.refused(2, "unknown mode 'turbo': shared, solo, offload or hardened", "run", "--mode", "turbo", "true")
        self.refused(2, "unknown mode '': shared, solo, offload or hardened", "run", "--mode=", "true")

    def test_what_was_meant(self):
        for meant, *arguments in (
            ("--mode hardened", "run", "--hardened", "true"),
            ("--mode solo", "run", "-solo", "true"),
            ("--stats", "run", "--stat", "true"),
            ("--sample", "run", "--sampel", "true"),
            ("--mode", "run", "-mode", "solo", "true"),
            ("annex run", "rnu", "true"),
            ("annex run --mode", "--mode", "solo", "true"),
            ("annex run true", "true"),
            ("annex --version", "--verison"),
            ("annex help env", "help", "environment"),
        ):
            self.refused(2, f"(did you mean {meant}?)", *arguments)
        self.refused(2, "unknown mode 'hardend': did you mean hardened?", "run", "--mode=hardend", "true")
        self.refused(2, "unknown command: frobnicate (see annex --help)", "frobnicate")

    # What it hands to the program

    def test_preloads_the_library_beside_it(self):
        shared, solo = self.annex.parent / "libannex.so", self.annex.parent / "libannex-solo.so"
        show = ["sh", "-c", 'echo "$LD_PRELOAD"']
        self.assertEqual(self.ran("run", *show), f"{shared}\n")
        self.assertEqual(self.ran("run", "--", *show), f"{shared}\n")
        self.assertEqual(self.ran("run", "--mode", "shared", *show), f"{shared}\n")
        self.assertEqual(self.ran("run", "--mode", "solo", "--", *show), f"{solo}\n")
        self.assertEqual(self.ran("run", "--mode=solo", *show), f"{solo}\n")

    def test_library_is_in_the_process(self):
        maps = self.ran("run", "cat", "/proc/self/maps")
        self.assertIn(str(self.annex.parent / "libannex.so"), maps)

    def test_keeps_what_was_preloaded_but_not_another_annex(self):
        library = self.annex.parent / "libannex.so"
        show = ["sh", "-c", 'echo "$LD_PRELOAD"']
        other = {"LD_PRELOAD": f"{self.stand_in}:/elsewhere/libannex-solo.so  libannex.so"}
        result = self.launch("run", *show, environment=other)  # ld.so grumbles about the two that are not there
        self.assertEqual(result.stdout, f"{self.stand_in}:{library}\n")  # a tool that calls the next malloc comes first
        nested = ["run", "--mode", "solo", self.annex, "run", *show]
        self.assertEqual(self.ran(*nested), f"{library}\n")

    def test_another_allocator_in_front(self):
        other = self.dir / "libjemalloc.so.2"
        shutil.copy(self.stand_in, other)
        result = self.launch("run", "true", environment={"LD_PRELOAD": f"{self.stand_in} {other}"})
        words = "warning: LD_PRELOAD has another allocator in front, which serves the program instead"
        self.assertEqual((result.returncode, result.stderr), (0, f"annex: {words}: {other}\n"))

    def test_a_malloc_of_the_program_s_own(self):
        program = self.dir / "own-malloc"
        source = 'extern "C" void* malloc(unsigned long) { return nullptr; } int main() { return 0; }'
        self.compile(source, program, "-rdynamic")
        result = self.launch("run", program)
        self.assertEqual(result.returncode, 0)
        self.assertIn(f"{program} has a malloc of its own linked in", result.stderr)

    def test_stats(self):
        show = ["sh", "-c", 'echo "$ANNEX_STATS"']
        self.assertEqual(self.ran("run", *show), "\n")
        self.assertEqual(self.ran("run", "--stats", *show), "text\n")
        self.assertEqual(self.ran("run", *show, environment={"ANNEX_STATS": "json"}), "json\n")

    def test_sample(self):
        show = ["sh", "-c", 'echo "$ANNEX_SAMPLE $ANNEX_BACKTRACE"']
        self.assertEqual(self.ran("run", *show), " \n")
        self.assertEqual(self.ran("run", "--sample", *show), "100 1\n")
        self.assertEqual(self.ran("run", "--sample", *show, environment={"ANNEX_SAMPLE": "7"}), "7 1\n")

    def test_arguments_and_status_pass_through(self):
        arguments = ["a b", "", "--stats", "--", "*"]
        self.assertEqual(self.ran("run", "--", "printf", "[%s]", *arguments), "[a b][][--stats][--][*]")
        self.assertEqual(self.launch("run", "sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(self.launch("run", "sh", "-c", "kill -9 $$").returncode, -9)
        self.assertEqual(self.ran("run", "sh", "-c", "echo $0"), "sh\n")  # argv[0] as given, not the path found

    # Finding the library

    def test_installed_layout(self):
        annex = self.house("prefix/bin", "../lib/libannex.so", "../lib/libannex-solo.so")
        expected = self.dir / "prefix/lib/libannex.so"
        self.assertEqual(self.ran("run", "sh", "-c", 'echo "$LD_PRELOAD"', annex=annex), f"{expected}\n")

    def test_called_through_a_link_and_from_elsewhere(self):
        link = self.dir / "link-to-annex"
        link.symlink_to(self.annex)
        expected = self.annex.parent / "libannex.so"
        output = self.ran("run", "sh", "-c", 'echo "$LD_PRELOAD"', annex=link, directory="/")
        self.assertEqual(output, f"{expected}\n")

    def test_library_by_its_plain_name(self):
        annex = self.house("versioned", "libannex.so.0.1.0")
        (annex.parent / "libannex.so").symlink_to("libannex.so.0.1.0")
        output = self.ran("run", "sh", "-c", 'echo "$LD_PRELOAD"', annex=annex)
        self.assertEqual(output, f"{annex.parent / 'libannex.so'}\n")

    def test_without_proc(self):
        self.assertEqual(self.ran_without_proc(self.annex), str(self.annex.parent / "libannex.so"))
        link = self.dir / "link-without-proc"
        link.symlink_to(self.annex)
        self.assertEqual(self.ran_without_proc(link), str(self.annex.parent / "libannex.so"))

    def ran_without_proc(self, annex):
        """What the launcher preloads where /proc is not mounted."""
        hidden = 'mount -t tmpfs none /proc && exec "$@"'
        command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", hidden, "sh"]
        if os.getuid() == 0:
            command.remove("--user")
            command.remove("--map-root-user")
        if subprocess.run([*command, "true"], capture_output=True).returncode != 0:
            self.cannot("needs the right to mount")
        shown = [annex, "run", "sh", "-c", 'test ! -e /proc/self && echo "$LD_PRELOAD"']
        result = subprocess.run([*command, *shown], capture_output=True, text=True, timeout=30)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout.strip()

    def test_library_missing(self):
        self.refused(2, "libannex.so is neither in", "run", "true", annex=self.house("empty"))
        solo = self.house("half", "libannex.so")
        self.refused(2, "libannex-solo.so is neither in", "run", "--mode", "solo", "true", annex=solo)

    def test_library_path_that_ld_so_cannot_take(self):
        for name in ("with space", "with:colon"):
            self.refused(2, "contains a space or a colon", "run", "true", annex=self.house(name, "libannex.so"))

    # Finding the program: 126 and 127

    def test_missing_program(self):
        self.refused(127, "no-such-program: not found", "run", "no-such-program")
        self.refused(127, "/no/such/program: not found", "run", "/no/such/program")
        self.refused(127, "'': not found", "run", "")
        self.refused(127, "/etc/passwd/x: not found", "run", "/etc/passwd/x")
        self.refused(127, "ls: not found", "run", "ls", environment={"PATH": "/nowhere"})

    def test_program_that_is_not_executable(self):
        plain = self.file("plain", "text", mode=0o644)
        self.refused(126, "plain: not executable", "run", plain)
        self.refused(126, "plain: not executable", "run", "plain", environment={"PATH": f"{self.dir}:/nowhere"})
        self.refused(126, "/tmp: is a directory", "run", "/tmp")
        self.refused(126, "/dev/null: not executable", "run", "/dev/null")

    def test_path_search(self):
        for place in ("first", "second"):
            self.file(f"{place}/tool", f"#!/bin/sh\necho {place}\n")
        (self.dir / "first/tool").chmod(0o644)
        path = f"{self.dir}/first:{self.dir}/second:/usr/bin:/bin"
        self.assertEqual(self.ran("run", "tool", environment={"PATH": path}), "second\n")
        self.assertEqual(
            self.ran("run", "tool", environment={"PATH": ":/bin"}, directory=self.dir / "second"), "second\n"
        )

    def test_without_path(self):
        command = ["env", "-u", "PATH", self.annex, "run", "echo", "found"]
        result = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stdout), (0, "found\n"), result.stderr)

    # Scripts

    def test_scripts(self):
        self.assertEqual(self.ran("run", self.file("script", "#!/bin/sh\necho ran\n")), "ran\n")
        self.assertEqual(self.ran("run", self.file("spaced", "#! \t/bin/sh -e \necho ran\n")), "ran\n")
        self.assertEqual(self.ran("run", self.file("by-env", "#!/usr/bin/env sh\necho ran\n")), "ran\n")
        self.assertEqual(self.ran("run", self.file("headless", "echo ran\n")), "ran\n")
        self.assertEqual(self.ran("run", self.file("empty-file", "")), "")

    def test_script_with_a_missing_interpreter(self):
        script = self.file("orphan", "#!/no/such/interpreter\n")
        self.refused(127, "orphan: /no/such/interpreter: not found", "run", script)
        self.refused(
            127, "no-such-language: not found", "run", self.file("orphan2", "#!/usr/bin/env no-such-language\n")
        )
        plain = self.file("plain-interpreter", "", mode=0o644)
        self.refused(126, "plain-interpreter: not executable", "run", self.file("orphan3", f"#!{plain}\n"))

    def test_script_with_a_static_interpreter(self):
        static = self.file("static-interpreter", elf_header())
        script = self.file("static-script", f"#!{static}\n")
        self.refused(2, "static-interpreter is statically linked", "run", script)
        self.file("static-script-2", f"#!{script}\n")
        self.refused(2, "static-interpreter is statically linked", "run", self.dir / "static-script-2")

    def test_scripts_in_a_circle(self):
        circle = self.dir / "circle"
        self.refused(126, "more than 4 scripts", "run", self.file("circle", f"#!{circle}\n"))

    # Programs that can't be preloaded: 2

    def test_static_program(self):
        for flags in (["-static"], ["-static-pie"]):
            static = self.dir / "static"
            self.compile("int main() { return 0; }", static, *flags)
            self.refused(2, "static is statically linked", "run", static)

    def test_program_of_another_machine(self):
        other = AARCH64 if MACHINE == X86_64 else X86_64
        self.refused(2, "is a program for another processor", "run", self.file("foreign", elf_header(machine=other)))

    def test_32_bit_program(self):
        program = self.file("small", elf_header(word=ELF32, machine=3))
        self.refused(2, "is a 32-bit program; this Annex is 64-bit", "run", program)

    def test_musl_program(self):
        loader = self.file("ld-musl-x86_64.so.1", elf_header())
        program = self.file("musl", elf_header(interpreter=str(loader).encode()))
        self.refused(2, "is linked with musl", "run", program)

    def test_missing_loader(self):
        program = self.file("loaderless", elf_header(interpreter=b"/no/such/ld.so"))
        self.refused(127, "needs the loader /no/such/ld.so: not found", "run", program)

    def test_program_built_with_a_sanitizer(self):
        for flag, name in (("address", "Address"), ("thread", "Thread"), ("leak", "Leak")):
            for compiler in (COMPILER, shutil.which("clang++")):
                program = self.dir / f"with-{flag}"
                command = [compiler or COMPILER, "-x", "c++", "-", "-o", program, f"-fsanitize={flag}"]
                built = subprocess.run(command, input="int main() {}", text=True, capture_output=True)
                if built.returncode != 0:
                    self.cannot(f"no program can be built with {flag} here: {built.stderr}")
                self.refused(2, f"with-{flag} is built with {name}Sanitizer", "run", program)

    def test_loader_as_a_command(self):
        loader = [*Path("/lib64").glob("ld-linux*.so.*"), *Path("/lib").glob("ld-linux*.so.*")][0]
        maps = self.ran("run", loader, "/bin/cat", "/proc/self/maps")
        self.assertIn(str(self.annex.parent / "libannex.so"), maps)

    # Rights

    def cannot(self, why):
        """Ends a test that can't be made here; where everything is required, it fails."""
        if os.environ.get("ANNEX_REQUIRE_ALL"):
            self.fail(why)
        self.skipTest(why)

    def set_user_id(self, program):
        """Makes the program, a copy of the test's own, run with another user's rights."""
        if os.getuid() != 0:
            self.cannot("needs root, to make a program set-user-ID")
        os.chown(program, 65534, 65534)
        program.chmod(0o4755)
        self.check_suid(program)
        return program

    def check_suid(self, program):
        if os.statvfs(program).f_flag & os.ST_NOSUID:
            self.cannot(f"{program} is on a filesystem mounted nosuid")

    def test_program_that_gains_rights(self):
        if os.getuid() == 0:
            program = self.set_user_id(Path(shutil.copy(os.path.realpath("/bin/true"), self.dir / "gaining")))
        else:
            program = Path(os.path.realpath(shutil.which("su")))
            self.check_suid(program)
        result = self.launch("run", program, "--version")
        self.assertIn("gains rights when it starts", result.stderr)
        self.assertEqual(result.returncode, 0)

    def test_launcher_that_gains_rights(self):
        annex = self.house("gaining-house", "libannex.so")
        os.chmod(self.dir, 0o755)
        self.set_user_id(annex)
        self.refused(2, "runs nothing with more rights than its user has", "run", "true", annex=annex)
        self.assertRegex(self.ran("--version", annex=annex), "^annex ")


if __name__ == "__main__":
    LAUNCHER, COMPILER = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
