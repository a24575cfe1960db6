"""The page in a browser: what it shows, what can be done with it, and that it needs nothing from elsewhere."""

import importlib.util
import os
import re
from pathlib import Path

import harness
import make_raw
from harness import ProfileCase

ROOT = harness.SOURCE.parents[2]
spec = importlib.util.spec_from_file_location("chromium", ROOT / "lab/tests/chromium.py")
chromium = importlib.util.module_from_spec(spec)
spec.loader.exec_module(chromium)

NODES = "[...document.querySelectorAll('#flame g')].map((g) => g.node.frame ? g.node.frame.short : 'all')"
CLICK = "[...document.querySelectorAll('#flame g')].find((g) => g.node.frame?.short === '{}')"


class PageTest(ProfileCase):
    def setUp(self):
        if not chromium.find():
            self.skipTest("no browser is here (chromium): the page is not looked at")

    def page(self, raw: Path | None = None, **keywords):
        self.html = self.converted("html", raw=raw)
        page = chromium.Page(self.html.as_uri(), self.dir / f"browser-{os.urandom(4).hex()}", **keywords)
        self.addCleanup(page.close)
        return page

    def press(self, page, key):
        page.evaluate(f"dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}'}}))")

    def text(self, page, selector):
        return page.evaluate(f"document.querySelector('{selector}').innerText")

    def quiet(self, page):
        self.assertEqual(page.console, [])
        self.assertEqual(page.requests, [self.html.as_uri()])

    def test_what_it_shows(self):
        page = self.page()
        self.assertEqual(self.text(page, "h1"), "Heap profile of sample")
        tiles = self.text(page, "#tiles")
        for told in ("262.9 KiB", "133", "964.0 KiB", "397.1 KiB", "33.8 %", "12.0 MiB"):
            self.assertIn(told, tiles)
        self.assertIn("free blocks in slabs 30.3 KiB", self.text(page, "#memory"))
        self.assertIn("forest::Tree::make_leaf", page.evaluate(NODES))
        self.assertRegex(self.text(page, "#sites tbody tr"), r"^92\.9 %\s+244\.1 KiB\s+1\s+781\.3 KiB\s+4\s+220\.0 KiB")
        self.assertIn("request=/index", self.text(page, "#sites"))
        self.assertRegex(self.text(page, "#pins tbody tr"), r"^300\.0 KiB\s+57\.2 %\s+300\.0 KiB\s+9\.8 KiB")
        self.assertRegex(
            self.text(page, "#classes tbody tr"), r"^112\s+1\s+64\.0 KiB\s+580\s+200\s+9\.8 KiB\s+1\.2 KiB\s+84\.7 %"
        )
        self.quiet(page)

    def test_widths_are_the_values(self):
        page = self.page()
        width = "Number({}.querySelector('rect').getAttribute('width'))"
        of = {
            name: page.evaluate(width.format(CLICK.format(name))) for name in ("main", "give_up", "forest::Tree::grow")
        }
        self.assertAlmostEqual(of["forest::Tree::grow"] / of["give_up"], 10000 / 250000, delta=0.001)
        page.evaluate("document.querySelector('[data-value=pinned]').click()")
        of = {name: page.evaluate(width.format(CLICK.format(name))) for name in ("give_up", "forest::Tree::grow")}
        self.assertAlmostEqual(of["forest::Tree::grow"] / of["give_up"], 307200 / 225280, delta=0.01)
        self.assertRegex(self.text(page, "#sites tbody tr"), r"^57\.2 %")
        self.quiet(page)

    def test_zoom(self):
        page = self.page()
        click = f"{CLICK.format('forest::Tree::grow')}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))"
        page.evaluate(click)
        self.assertNotIn("give_up", page.evaluate(NODES))
        self.assertEqual(page.evaluate(NODES)[:2], ["all", "_start"])
        self.assertFalse(page.evaluate("document.getElementById('reset').disabled"))
        self.press(page, "Escape")
        self.assertIn("give_up", page.evaluate(NODES))
        page.evaluate(click)
        page.evaluate("document.getElementById('reset').click()")
        self.assertIn("give_up", page.evaluate(NODES))
        self.quiet(page)

    def test_search(self):
        page = self.page()
        self.assertEqual(self.text(page, "#matched"), "")
        page.evaluate(
            "{const s = document.getElementById('search'); s.value = 'TREE::'; s.dispatchEvent(new Event('input'))}"
        )
        self.assertEqual(self.text(page, "#matched"), "“tree::” is in 1 of 4 call sites: 9.8 KiB of live bytes, 3.7 %")
        lit = page.evaluate("[...document.querySelectorAll('#flame g:not(.other)')].map((g) => g.node.frame.short)")
        self.assertEqual(lit, ["forest::Tree::grow", "forest::Tree::make_branch", "forest::Tree::make_leaf"])
        self.assertEqual(page.evaluate("document.querySelectorAll('#sites tbody tr').length"), 1)
        self.press(page, "Escape")
        self.assertEqual(page.evaluate("document.querySelectorAll('#flame .other').length"), 0)
        self.press(page, "/")
        self.assertEqual(page.evaluate("document.activeElement.id"), "search")
        self.quiet(page)

    def test_tooltip(self):
        page = self.page()
        move = "new MouseEvent('mousemove', {bubbles: true, clientX: 600, clientY: 500})"
        page.evaluate(f"{CLICK.format('forest::Tree::grow')}.querySelector('rect').dispatchEvent({move})")
        told = self.text(page, "#tip")
        self.assertRegex(
            told, r"^forest::Tree::grow\(int\)\n.*sample_program\.cpp:\d+\n.*/sample\n9\.8 KiB, 3\.7 % of all$"
        )
        page.evaluate("document.getElementById('flame').dispatchEvent(new MouseEvent('mouseleave'))")
        self.assertTrue(page.evaluate("document.getElementById('tip').hidden"))
        self.quiet(page)

    def test_light_and_dark(self):
        seen = []
        for dark in (False, True):
            page = self.page(dark=dark)
            colours = page.evaluate("['backgroundColor', 'color'].map((one) => getComputedStyle(document.body)[one])")
            seen.append([sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in colours])
            if folder := os.environ.get("SCREENSHOTS"):
                page.screenshot(Path(folder) / f"profile-{'dark' if dark else 'light'}.png", whole=True)
            self.quiet(page)
        (back, text), (dark_back, dark_text) = seen
        self.assertGreater(back, text + 400)
        self.assertGreater(dark_text, dark_back + 400)

    def test_a_narrow_window(self):
        page = self.page(width=390)
        self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), 390)

    def test_nothing_in_it(self):
        raw = make_raw.sample(self.program)
        raw.sites, raw.live, raw.classes, raw.stats, raw.labels = [], [], [], {}, []
        self.program.modules, modules = [], self.program.modules
        self.addCleanup(setattr, self.program, "modules", modules)
        page = self.page(self.write("none.raw", raw.text()))
        self.assertIn("No sample has any live bytes.", self.text(page, "#flame"))
        self.quiet(page)

    def test_names_that_are_markup(self):
        raw = make_raw.sample(self.program)
        raw.labels[0] = "1 </script><script>alert(1)</script> <!--<b>@SCRIPT@&"
        page = self.page(self.write("markup.raw", raw.text()))
        self.assertIn("</script><script>alert(1)</script>=<!--<b>@SCRIPT@&", self.text(page, "#sites"))
        self.quiet(page)


if __name__ == "__main__":
    harness.main()
