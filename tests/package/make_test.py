"""The Makefile's install and uninstall: make_test.py SOURCES

On a project of one file in the place of Annex: what is asked is where things go, and in which order they are done.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCES = Path(sys.argv.pop()).resolve()
PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(stand_in VERSION 0.1.0 LANGUAGES NONE)
file(WRITE ${PROJECT_BINARY_DIR}/configured.for ${CMAKE_INSTALL_PREFIX})
add_custom_target(everything ALL COMMAND sleep 0.2)
add_custom_target(annex-library COMMAND sleep 0.2)
add_custom_target(annex-installed COMMAND sleep 0.2)
foreach(name libannex.so libannex-solo.so libannex-offload.so libannex-hardened.so annex)
  add_custom_target(${name})
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/configured.for DESTINATION lib)
install(FILES annex.h DESTINATION include/annex)
"""


class MakeTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="annex-make-")
        self.addCleanup(scratch.cleanup)
        self.dir = Path(scratch.name)
        self.tree = self.dir / "tree"
        self.tree.mkdir()
        for name in ("Makefile", "CMakePresets.json", "cmake", "tools"):
            if (SOURCES / name).exists():
                (self.tree / name).symlink_to(SOURCES / name)
        (self.tree / "CMakeLists.txt").write_text(PROJECT)
        (self.tree / "annex.h").write_text("// header\n")

    def make(self, *arguments, status=0):
        ours = ("MAKE", "MFLAGS", "DESTDIR")  # of a make that runs this test
        clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        result = subprocess.run(
            ["make", *arguments],
            cwd=self.tree,
            env=clean,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )
        self.assertEqual(result.returncode, status, result.stdout)
        return result.stdout

    def installed(self, place):
        return sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())

    def test_many_jobs_install_into_the_prefix(self):
        for number in range(2):
            place = self.dir / f"place-{number}"
            self.make("-j8", "install", f"PREFIX={place}")
            self.assertEqual(self.installed(place), ["include/annex/annex.h", "lib/configured.for"])
            self.assertEqual((place / "lib/configured.for").read_text(), str(place))

    def test_build_and_install_at_once(self):
        place = self.dir / "place"
        self.make("-j8", "build", "install", "library", f"PREFIX={place}")
        self.assertEqual((place / "lib/configured.for").read_text(), str(place))

    def test_uninstall(self):
        first, second = self.dir / "first", self.dir / "second"
        for place in (first, second):
            self.make("install", f"PREFIX={place}")
            (place / "lib/others").write_text("stays")
        self.make("uninstall", f"PREFIX={second}")
        self.assertEqual(self.installed(second), ["lib/others"])
        self.assertFalse((second / "include/annex").exists())
        self.assertTrue((second / "include").exists())
        self.assertEqual(len(self.installed(first)), 3)
        self.make("uninstall", f"PREFIX={first}")
        self.assertEqual(self.installed(first), ["lib/others"])

    def test_uninstall_from_a_staging_place(self):
        stage = self.dir / "stage"
        self.make("install", "PREFIX=/opt/annex", f"DESTDIR={stage}")
        self.assertEqual(len(self.installed(stage / "opt/annex")), 2)
        self.make("uninstall", "PREFIX=/opt/annex", f"DESTDIR={stage}")
        self.assertEqual(self.installed(stage), [])

    def test_uninstall_without_an_installation(self):
        self.assertIn("no list of what was installed", self.make("uninstall", f"PREFIX={self.dir}", status=2))

    def test_help_lists_every_target_for_users(self):
        listed = {line.split()[1] for line in self.make("help").splitlines()}
        for name in ("build", "library", "run", "test", "bench", "sim", "install", "uninstall", "venv", "clean"):
            self.assertIn(name, listed)


class CommitTest(unittest.TestCase):
    """cmake/commit.cmake, as the launcher's build calls it."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="annex-commit-")
        self.addCleanup(scratch.cleanup)
        self.dir = Path(scratch.name)

    def git(self, *arguments, at):
        identity = ["-c", "user.name=nobody", "-c", "user.email=nobody@invalid"]
        return subprocess.run(
            ["git", *identity, "-C", at, *arguments], check=True, capture_output=True, text=True
        ).stdout.strip()

    def tree(self, place):
        (place / "cmake").mkdir(parents=True)
        for name in ("commit.cmake", "commit.txt"):
            shutil.copy(SOURCES / "cmake" / name, place / "cmake")
        shutil.copy(SOURCES / ".gitattributes", place)
        return place

    def repository(self, place):
        self.tree(place)
        self.git("init", "--quiet", at=place)
        self.git("add", ".", at=place)
        self.git("commit", "--quiet", "-m", "first", at=place)
        return place

    def commit(self, tree):
        output = self.dir / "commit.cpp"
        script = tree / "cmake/commit.cmake"
        subprocess.run(["cmake", "-D", f"SOURCE={tree}", "-D", f"OUTPUT={output}", "-P", script], check=True)
        return output.read_text().split('"')[1]

    def test_repository(self):
        tree = self.repository(self.dir / "tree")
        head = self.git("rev-parse", "--short=12", "HEAD", at=tree)
        self.assertEqual(self.commit(tree), f" ({head})")
        (tree / "cmake/commit.txt").write_text("changed\n")
        self.assertEqual(self.commit(tree), f" ({head}-dirty)")
        self.git("checkout", "--quiet", ".", at=tree)
        self.git("tag", "v0.1.0", at=tree)
        self.assertEqual(self.commit(tree), " (v0.1.0)")

    def test_archive_of_gits(self):
        tree = self.repository(self.dir / "tree")
        archive = self.dir / "archive.tar"
        self.git("archive", "--output", archive, "HEAD", at=tree)
        unpacked = self.dir / "unpacked"
        unpacked.mkdir()
        subprocess.run(["tar", "-xf", archive, "-C", unpacked], check=True)
        head = self.git("rev-parse", "HEAD", at=tree)
        said = self.commit(unpacked).strip(" ()")
        self.assertGreaterEqual(len(said), 7)
        self.assertTrue(head.startswith(said), said)

    def test_bare_files(self):
        self.assertEqual(self.commit(self.tree(self.dir / "tree")), "")

    def test_files_in_somebody_elses_repository(self):
        self.repository(self.dir / "other")
        self.assertEqual(self.commit(self.tree(self.dir / "other/vendor/annex")), "")


unittest.main()
