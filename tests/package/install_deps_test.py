"""tools/install-deps on lists of its own, with stand-ins for apt and dpkg: install_deps_test.py SOURCES

A system is what the test says: the packages that are installed, those that the release has, and what each brings.
"""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCES = Path(sys.argv.pop()).resolve()

DPKG_QUERY = r"""#!/bin/bash
# dpkg-query -W -f FORMAT [PACKAGE]
if [[ $# = 3 ]]; then sed 's/^/installed /' "$SYSTEM/installed"; exit; fi
grep -qxF "$4" "$SYSTEM/installed" && sed -n "s/^$4 depends /Depends: /p" "$SYSTEM/release"
"""
APT_CACHE = r"""#!/bin/bash
# apt-cache show --no-all-versions PACKAGE
awk -v name="$3" '$1 == name { found = 1 } END { exit !found }' "$SYSTEM/release" || exit 100
echo "Version: 1"
sed -n "s/^$3 depends /Depends: /p" "$SYSTEM/release"
"""
APT_GET = r"""#!/bin/bash
# apt-get ... install ... PACKAGE... | apt-get ... update
echo "$*" >>"$SYSTEM/calls"
[[ $* = *install* ]] || exit 0
for name; do
  awk -v name="$name" '$1 == name { found = 1 } END { exit !found }' "$SYSTEM/release" || continue
  echo "$name" >>"$SYSTEM/installed"
  for brought in $(sed -n "s/^$name brings //p" "$SYSTEM/release"); do
    : >"$SYSTEM/bin/$brought"
    chmod 755 "$SYSTEM/bin/$brought"
  done
done
"""
# Of what it does with rights, through env, only this: nothing of the machine is touched.
ENV = r"""#!/bin/bash
while [[ $1 = *=* ]]; do shift; done
[[ $1 != apt-get ]] || exec "$@"
"""
SUDO = """#!/bin/bash
[[ $1 != -n ]] || shift
exec "$@"
"""
STAND_INS = {"dpkg-query": DPKG_QUERY, "apt-cache": APT_CACHE, "apt-get": APT_GET, "env": ENV, "sudo": SUDO}


class InstallDepsTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="annex-deps-")
        self.addCleanup(scratch.cleanup)
        self.dir = Path(scratch.name)
        (self.dir / "bin").mkdir()
        for name, text in STAND_INS.items():
            (self.dir / "bin" / name).write_text(text)
            (self.dir / "bin" / name).chmod(0o755)
        (self.dir / "calls").write_text("")

    def system(self, installed="", release=""):
        (self.dir / "installed").write_text("".join(f"{name}\n" for name in installed.split()))
        (self.dir / "release").write_text("".join(f"{line.strip()}\n" for line in release.split(";") if line.strip()))

    def install(self, text, status=0):
        """What it said, and the packages that it installed."""
        (self.dir / "list.txt").write_text(text)
        before = (self.dir / "installed").read_text().split()
        result = subprocess.run(
            [SOURCES / "tools/install-deps", self.dir / "list.txt"],
            env={"PATH": f"{self.dir}/bin:{os.environ['PATH']}", "SYSTEM": str(self.dir)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )
        self.assertEqual(result.returncode, status, result.stdout)
        return result.stdout, (self.dir / "installed").read_text().split()[len(before) :]

    def test_nothing_to_do_is_silent(self):
        self.system("cmake b", "cmake;b")
        self.assertEqual(self.install("cmake\nc|b\n# comment\n\nother@nowhere\nx ? true\n"), ("", []))
        self.assertEqual((self.dir / "calls").read_text(), "")

    def test_missing(self):
        self.system("cmake", "cmake;g++;ninja-build")
        self.assertEqual(self.install("cmake\ng++  # with a comment\nninja-build\n")[1], ["g++", "ninja-build"])

    def test_a_later_alternative_where_the_release_lacks_the_first(self):
        self.system("", "b")
        self.assertEqual(self.install("a|b\n")[1], ["b"])

    def test_a_later_alternative_does_not_stand_for_one_that_the_release_has(self):
        """clang on Debian 12 brings libclang-common-14-dev, which has the run-time library on another release."""
        self.system("clang libclang-common-14-dev", "clang;libclang-rt-14-dev;libclang-common-14-dev")
        self.assertEqual(self.install("clang\nlibclang-rt-14-dev|libclang-common-14-dev\n")[1], ["libclang-rt-14-dev"])

    def test_version_of_another_package(self):
        clang = "clang;clang depends clang-22, llvm;libclang-rt-22-dev;libclang-rt-14-dev"
        python = "python3;python3 depends python3.14 (>= 3.14.2-1~), libpython3-stdlib (= 3.14);libpython3.14-testsuite"
        self.system("", f"{clang};{python}")
        text = "libclang-rt-{clang}-dev|libclang-common-{clang}-dev\nlibpython{python3}-testsuite\n"
        self.assertEqual(self.install(text)[1], ["libclang-rt-22-dev", "libpython3.14-testsuite"])
        self.assertEqual(self.install(text), ("", []))

    def test_a_command_decides_whatever_is_installed(self):
        self.system("tool", "tool;tool brings tool;works;works brings run-time")
        self.assertEqual(self.install("tool|works ? true\n"), ("", []))
        said, _ = self.install("tool ? command -v run-time\n", status=1)
        self.assertIn("still missing after the install: tool?command -v run-time", said)
        self.assertEqual(self.install("works ? command -v run-time\n")[1], ["works"])

    def test_what_a_first_round_shows_to_be_missing(self):
        self.system("", "compiler;compiler brings compiler;headers;headers brings headers")
        text = "compiler\nheaders ? ! command -v compiler || command -v headers\n"
        self.assertEqual(self.install(text)[1], ["compiler", "headers"])

    def test_a_package_that_no_release_has(self):
        self.system("", "a")
        said, _ = self.install("a\nnobody|nothing\n", status=1)
        self.assertIn("this release has no nobody|nothing", said)

    def test_sanitizers_are_tried(self):
        text = (SOURCES / "tools/apt-test.txt").read_text()
        lines = [line for line in text.splitlines() if line.startswith("libclang")]
        self.assertTrue(lines and all("? tools/can-link clang++ -fsanitize=" in line for line in lines), lines)


unittest.main()
