"""tools/layers.py finds what it is there to find: each kind of wrong include, in a tree made up for it."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "tools"))
import layers

TREE = layers.Tree(
    "src",
    ("src", "include"),
    (("top",), ("left", "right"), ("bottom",)),
    document=("order.md", r"^(\w+)$", True),
    table=("order.md", ("right",)),
    most_floors={"bottom": 3},
)
SOUND = {
    "order.md": "top\nleft\nright\nbottom\n| `right/c` | what it knows |\n",
    "include/left/api.h": "",
    "src/top/a.cpp": '#include "top/a.h"\n#include "left/b.h"\n#include "right/c.h"\n#include <vector>\n',
    "src/top/a.h": '#include "bottom/d.h"\n#include "bottom/e.h"\n',
    "src/left/b.h": '#include "bottom/d.h"\n',
    "src/right/c.h": '#include "bottom/d.h"\n',
    "src/bottom/d.h": "#include <cstddef>\n",
    "src/bottom/d.cpp": '#include "bottom/d.h"\n',
    "src/bottom/e.h": '#include "bottom/d.h"\n',
}


class LayersTest(unittest.TestCase):
    def found(self, changed, exceptions=()):
        with tempfile.TemporaryDirectory() as name:
            for path, text in {**SOUND, **changed}.items():
                place = Path(name) / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text)
            return layers.problems(Path(name), [TREE], dict(exceptions))

    def expect(self, wanted, changed, exceptions=()):
        """One complaint, which has the words."""
        found = self.found(changed, exceptions)
        self.assertEqual(len(found), 1, found)
        self.assertIn(wanted, found[0])

    def test_a_sound_tree(self):
        self.assertEqual(self.found({}), [])

    def test_upwards(self):
        wanted = "src/bottom/x.h:2: includes src/left/b.h: left stands above bottom"
        self.expect(wanted, {"src/bottom/x.h": '\n#  include "left/b.h"\n'})
        self.expect(wanted, {"src/bottom/x.h": "\n#include <left/b.h>\n"})

    def test_the_public_interface_has_a_layer_too(self):
        self.expect("left stands above bottom", {"src/bottom/x.h": '#include "left/api.h"\n'})

    def test_sideways(self):
        wanted = "src/left/x.cpp:1: includes src/right/c.h: right stands beside left"
        self.expect(wanted, {"src/left/x.cpp": '#include "right/c.h"\n'})

    def test_a_folder_without_a_place(self):
        self.expect("new has no place among the layers", {"src/new/x.h": '#include "bottom/d.h"\n'})
        self.expect(". has no place among the layers", {"src/x.h": '#include "bottom/d.h"\n'})

    def test_paths_that_hide_the_layer(self):
        self.expect("d.h is not the path of a file", {"src/bottom/x.h": '#include "d.h"\n'})
        self.expect("is not the path of a file", {"src/bottom/x.h": '#include "bottom/../left/b.h"\n'})

    def test_headers_in_a_circle(self):
        changed = {"src/bottom/d.h": '#include "bottom/e.h"\n'}
        found = self.found(changed)
        self.assertTrue(any(line.startswith("files include each other") for line in found), found)
        # No exception is made for headers.
        found = self.found(changed, {("src/bottom/d.h", "src/bottom/e.h"): "why"})
        self.assertTrue(any(line.startswith("files include each other") for line in found), found)

    def test_components_in_a_circle(self):
        changed = {"src/bottom/d.cpp": '#include "bottom/d.h"\n#include "bottom/e.h"\n'}
        self.expect("components include each other in a circle: src/bottom/d.cpp:2 includes", changed)
        self.assertEqual(self.found(changed, {("src/bottom/d.cpp", "src/bottom/e.h"): "why"}), [])

    def test_a_component_that_the_table_does_not_tell_of(self):
        self.expect("no row of the table tells of src/right/new", {"src/right/new.cpp": "#include <vector>\n"})
        self.expect("a row of the table tells of right/gone", {"order.md": SOUND["order.md"] + "| `right/gone` | |\n"})

    def test_more_floors_than_a_folder_may_have(self):
        tower = {f"src/bottom/t{n}.h": f'#include "bottom/t{n - 1}.h"\n' for n in range(1, 4)} | {"src/bottom/t0.h": ""}
        self.expect("bottom has 4 floors, more than 3: t0 < t1 < t2 < t3", tower)
        del tower["src/bottom/t3.h"]
        self.assertEqual(self.found(tower), [])

    def test_exceptions_that_nothing_needs(self):
        wanted = "closes no circle any more"
        self.expect(wanted, {}, {("src/bottom/d.cpp", "src/bottom/e.h"): "not there"})
        self.expect(wanted, {}, {("src/bottom/e.h", "src/bottom/d.h"): "harmless"})

    def test_a_document_that_tells_another_order(self):
        self.expect(
            "its order of src is top right left bottom", {"order.md": "top\nright\nleft\nbottom\n| `right/c` | |\n"}
        )

    def test_nothing_to_check(self):
        found = layers.problems(Path("/nowhere"), [layers.Tree("src", ("src",), TREE.layers)], {})
        self.assertEqual(found, ["src: there are no includes to check"])


if __name__ == "__main__":
    unittest.main()
