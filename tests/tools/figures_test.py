"""tools/figures.py finds figures that are out of date, in documents made up for it, and puts the right ones there."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "tools"))
import figures
from truth import Truth, Unknown, size

FILES = {
    "tests/golden/shared.txt": "compiler: GCC 12\nthread-local bytes: 9\n\n"
    "path: malloc  # of a small block\ninstructions: 14\nloads: 5\n#   ret\n\n"
    "path: free  # by its thread\ninstructions: 28\nloads: 8\n",
    "docs/size-classes.md": "| class | block |\n|---:|---:|\n| 0 | 16 | 0 | 100.0 |\n| 1 | 32 | 17 | 46.9 |\n",
    "src/core/low.h": "inline constexpr size_t kShift = 16;\nconstexpr size_t kUnit = size_t{1} << kShift;\n",
    "src/core/high.h": '#include "core/low.h"\nstatic constexpr uint32_t kHalf = (kUnit / 2u - 1) * 2;\n'
    "constexpr long kCalled = f(3);\n",
    "doc.md": "malloc takes 14\ninstructions and 5 loads.\nA unit is 64 KiB\nlarge.\n",
    "src/x.h": "// It keeps 9 bytes of\n// thread-local storage, in a unit of 64\n// KiB each.\n",
}
FIGURES = [
    (
        "doc.md",
        "takes {} instructions and {} loads",
        lambda t: [t.golden("shared", "malloc", "instructions"), t.golden("shared", "malloc", "loads")],
    ),
    ("doc.md", "A unit is {} large", lambda t: size(t.constant("src/core/high.h", "kUnit"))),
    ("src/x.h", "keeps {} bytes of thread-local storage", lambda t: t.thread_local("shared")),
    ("src/x.h", "a unit of {} each", lambda t: size(t.constant("src/core/low.h", "kUnit"))),
]
WATCHED = ("*.md", "src/*.h")


class FiguresTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        for path, text in FILES.items():
            self.put(path, text)

    def put(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def change(self, path, old, new):
        text = (self.root / path).read_text()
        self.assertIn(old, text)
        self.put(path, text.replace(old, new))

    def check(self):
        return figures.check(self.root, FIGURES, WATCHED)

    def test_right_figures(self):
        wrong, texts = self.check()
        self.assertEqual(wrong, [])
        for path, text in texts.items():
            self.assertEqual(text, FILES[path])

    def test_wrong_figures_are_told_and_set_right(self):
        self.change("doc.md", "takes 14", "takes 15")
        self.change("doc.md", "64 KiB", "8 MiB")
        self.change("src/x.h", "keeps 9", "keeps 16")
        self.change("src/x.h", "64\n// KiB", "1\n// MiB")
        wrong, texts = self.check()
        told = "\n".join(wrong)
        for one in ("doc.md:1: 15 where it is 14", "doc.md:3: 8 MiB where it is 64 KiB", "src/x.h:1: 16 where it is 9"):
            self.assertIn(one, told)
        self.assertEqual(len(wrong), 4, told)
        self.assertEqual(texts["doc.md"], FILES["doc.md"])
        self.assertEqual(texts["src/x.h"].replace("64 KiB", "64\n// KiB"), FILES["src/x.h"])

    def test_a_source_that_changes(self):
        self.change("tests/golden/shared.txt", "instructions: 14", "instructions: 13")
        self.change("src/core/low.h", "= 16", "= 20")
        wrong, texts = self.check()
        self.assertEqual(len(wrong), 3, wrong)
        self.assertIn("takes 13\ninstructions and 5 loads.\nA unit is 1 MiB\n", texts["doc.md"])

    def test_words_that_are_gone_or_there_twice(self):
        self.change("doc.md", "A unit is", "Units are")
        self.assertIn("doc.md: the words of a figure are there 0 times", self.check()[0][0])
        self.put("doc.md", FILES["doc.md"] * 2)
        self.assertIn("doc.md: the words of a figure are there 2 times", self.check()[0][0])

    def test_a_source_that_is_gone(self):
        self.change("tests/golden/shared.txt", "loads: 5\n", "")
        self.change("src/core/low.h", "kUnit", "kOther")
        told = "\n".join(self.check()[0])
        self.assertIn("tests/golden/shared.txt has 0 times", told)
        self.assertIn("src/core/high.h defines no constant kUnit", told)

    def test_figures_that_nothing_checks(self):
        self.change("doc.md", "large.\n", "large. free takes 28 instructions\nwith 8 loads.\n")
        wrong, _ = self.check()
        self.assertEqual(len(wrong), 2, wrong)
        self.assertIn("doc.md:4: nothing checks 28 instructions", wrong[0])

    def test_where_figures_come_from(self):
        truth = Truth(self.root)
        self.assertEqual(truth.golden("shared", "free", "loads"), 8)
        self.assertEqual(truth.class_of(17)[:2], [1, 32])
        self.assertEqual(truth.constant("src/core/high.h", "kHalf"), (65536 // 2 - 1) * 2)
        self.assertEqual([size(n) for n in (9, 1024, 3 << 20, 1536)], ["9", "1 KiB", "3 MiB", "1536"])
        for unknown in ("kCalled", "kNone"):
            with self.assertRaises(Unknown):
                truth.constant("src/core/high.h", unknown)


if __name__ == "__main__":
    unittest.main()
