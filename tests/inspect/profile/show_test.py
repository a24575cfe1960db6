"""annex profile show and diff: what the reader refuses, whether the numbers are right, and what is said of wrong
arguments."""

import re
import shutil

import harness
import make_raw
from harness import ProfileCase


class ReaderTest(ProfileCase):
    def broken(self, message, change):
        text = self.raw.read_text()
        changed = change(text)
        self.assertNotEqual(changed, text)
        self.refused(1, message, "show", self.write("broken.raw", changed))

    def test_a_file_that_cannot_be_read(self):
        self.refused(1, "No such file or directory", "show", self.dir / "none.raw")
        self.refused(1, "Is a directory", "show", self.dir)
        self.broken("is empty", lambda text: "")

    def test_another_file(self):
        self.broken("is no raw heap profile; give a .raw file", lambda text: "\x1f\x8b" + text)
        self.broken(
            "is of format 2, and this annex knows format 1", lambda text: text.replace("profile 1", "profile 2")
        )

    def test_a_file_without_its_end(self):
        """Cut anywhere: no prefix is taken for a whole file."""
        text = self.raw.read_text()
        for length in {15, 16, 60, len(text) // 3, len(text) // 2, len(text) - 5, len(text) - 4, len(text) - 1}:
            self.broken("ends in the middle", lambda text, length=length: text[:length])
        self.broken("goes on after its end", lambda text: text + "\n")

    def test_a_line_that_is_not_what_it_has_to_be(self):
        def line(old, new):
            number = self.raw.read_text().split(old)[0].count("\n") + 1
            self.broken(f"line {number} is not", lambda text: text.replace(old, new, 1))

        line("pid 4711", "pid x")
        line("pid 4711", "pid -1")
        line("pid 4711", "pid 4711 1")
        line("rate 524288\n", "")
        line("stat slabs 131072", "stat slabs")
        line("class 112 1", "klass 112 1")
        line("class 112 1", "label 112 1")
        line("module 1 ", "module 0 ")
        line("module 2 ", "module 1 ")
        line("label 1 user", "label 1 us\\xer")
        line("site 1 1 10", "site 1 7 10")
        line("site 2 0 5 250.500", "site 2 0 5 250.5x")
        line("site 2 0 5 250.500", "site 1 0 5 250.500")
        line(" 1:", " 99:")
        line("live 2 ", "live 9 ")
        line(" 320 10\n", " 320 0\n")
        line(" 320 10\n", " 320 10,\n")

    def test_numbers_beyond_what_there_can_be(self):
        self.broken("line 2 is not", lambda text: text.replace("pid 4711", "pid 99999999999999999999"))
        self.broken("is not", lambda text: text.replace("live 1 7f", f"live 1 {'f' * 17}7f"))
        self.broken("is not", lambda text: text.replace("250.500", "nan"))
        self.broken("is not", lambda text: text.replace("250.500", "inf"))
        self.broken("is not", lambda text: text.replace("250.500", "-1.0"))


class ShowTest(ProfileCase):
    def test_numbers(self):
        text = self.output("show", self.raw)
        # 100 * 100 + 300 * 10.5 + 200000 * 1.25 + 290 * 21 bytes; 132.75 blocks.
        self.assertIn("live 262.9 KiB in 133 blocks; allocated 964.0 KiB in 1,294 blocks", text)
        self.assertIn("profiled for 12.5 s: 20 samples, one each 512.0 KiB", text)
        # slabs 131072, spans 200000, dirty 65536, metadata 10000
        self.assertIn("heap 397.1 KiB resident, 33.8 % of it not asked for", text)
        self.assertIn("process 9.0 MiB, at most 12.0 MiB", text)

    def test_no_more_than_the_process_is_resident(self):
        raw = make_raw.sample(self.program)
        raw.stats["resident"] = 300_000
        self.assertIn("heap 293.0 KiB resident, 10.3 % of it", self.output("show", self.write("small.raw", raw.text())))

    def rows(self, *arguments):
        """The first table's numbers by the function that allocates."""
        table = self.output("show", self.raw, *arguments).split("\n\n")[1].splitlines()
        return [line.rstrip().split("  ")[-1].split(" (")[0] for line in table[1:]]

    def test_top_sites(self):
        leave, leaf, plain, fill = (
            "(anonymous namespace)::record_and_leave",
            "forest::Tree::make_leaf",
            "plain_c",
            "main::{lambda}::operator()",
        )
        self.assertEqual(self.rows(), [leave, leaf, plain, fill])
        self.assertEqual(self.rows("--by", "blocks"), [leaf, plain, fill, leave])
        self.assertEqual(self.rows("--by", "total-blocks"), [leaf, fill, plain, leave])
        self.assertEqual(self.rows("--by", "pinned"), [leaf, leave, fill])
        self.assertEqual(self.rows("--by", "total", "--top", "2"), [leave, leaf])

    def test_short_stacks(self):
        text = self.output("show", self.raw)
        self.assertRegex(
            text,
            r" 9\.8 KiB   3\.7 %     100  forest::Tree::make_leaf \(sample_program\.cpp:\d+\) <"
            r" forest::Tree::make_branch < forest::Tree::grow < main \[request=/index user=a b\]\n",
        )
        self.assertRegex(text, r"record_and_leave \(sample_program\.cpp:\d+\) < give_up < main\n")
        self.assertRegex(
            text, r"plain_c \(sample_program\.cpp:\d+\) < libsample\.so\+0x[0-9a-f]+ < call_from_library < main"
        )

    def test_who_pins(self):
        """60 blocks with 4 on their page, 40 on two pages with 2 and 1; 1.25 spans."""
        table = self.output("show", self.raw).split("\n\n")[2]
        rows = [line.split("  ") for line in table.splitlines()[1:]]
        numbers = [[cell.strip() for cell in row if cell.strip()][:3] for row in rows]
        self.assertEqual(
            numbers,
            [
                ["300.0 KiB", "300.0 KiB", "9.8 KiB"],
                ["220.0 KiB", "220.0 KiB", "244.1 KiB"],
                ["4.2 KiB", "0 B", "3.1 KiB"],
            ],
        )

    def pins_of_two(self, *live):
        """What two sites' blocks of 320 bytes pin, and what goes back without them."""
        raw = make_raw.sample(self.program)
        raw.live = [f"{line.split()[0]} {line.split()[1]} 300 320 16.000 9 4712 320 {line.split()[2]}" for line in live]
        table = self.output("show", self.write("two.raw", raw.text())).split("\n\n")[2]
        return [re.split("  +", line.strip())[:2] for line in table.splitlines()[1:]]

    def test_who_lies_on_the_same_page(self):
        """The nearest sampled blocks of that size, on pages with about as many blocks, stand for a page's others."""
        self.assertEqual(self.pins_of_two("2 1000 2", "4 2000 2"), [["32.0 KiB", "0 B"], ["32.0 KiB", "0 B"]])
        self.assertEqual(self.pins_of_two("2 1000 2", "4 2000 1"), [["64.0 KiB", "64.0 KiB"], ["32.0 KiB", "32.0 KiB"]])
        # As many of either: each has filled pages of its own, but perhaps where they meet.
        self.assertEqual(
            self.pins_of_two("2 1000 2", "2 2000 2", "2 3000 3", "4 9000 3", "4 a000 2", "4 b000 2"),
            [["85.3 KiB", "64.0 KiB"], ["85.3 KiB", "64.0 KiB"]],
        )
        self.assertEqual(  # by chance, one on each side
            self.pins_of_two("4 1000 3", "2 2000 3", "2 3000 3", "2 4000 3", "4 5000 3"),
            [["64.0 KiB", "21.3 KiB"], ["42.7 KiB", "0 B"]],
        )
        self.assertEqual(self.pins_of_two("2 1000 4,4"), [["32.0 KiB", "32.0 KiB"]])  # once, though on two pages

    def test_size_classes(self):
        table = self.output("show", self.raw).split("\n\n")[3]
        row = " ".join(table.splitlines()[1].split())
        self.assertEqual(row, "112 1 64.0 KiB 580 200 9.8 KiB 1.2 KiB 84.7 %")

    def test_no_samples(self):
        raw = make_raw.sample(self.program)
        raw.sites, raw.live, raw.classes, raw.stats = [], [], [], {}
        self.assertIn("live 0 B in 0 blocks", self.output("show", self.write("none.raw", raw.text())))

    def test_a_file_that_changed_or_went_away(self):
        copy = self.dir / "copy"
        shutil.copy(harness.PROGRAM, copy)
        raw = make_raw.sample(self.program)
        path = self.write("moved.raw", raw.text().replace(str(harness.PROGRAM), str(copy)))
        self.assertIn("forest::Tree::grow", self.output("show", path))
        data = copy.read_bytes()
        build_id = bytes.fromhex(self.program.modules[0].build_id)
        copy.write_bytes(data.replace(build_id, bytes(len(build_id))))
        result = self.annex("show", path)
        self.assertEqual(
            (result.returncode, result.stderr),
            (
                0,
                f"annex: {copy}: the file is another one now than the one that ran; its functions have no names here\n",
            ),
        )
        self.assertRegex(result.stdout, r"  copy\+0x[0-9a-f]+ < copy\+0x[0-9a-f]+ <")
        copy.unlink()
        self.assertIn(f"annex: {copy}: No such file or directory; its functions", self.annex("show", path).stderr)
        copy.write_text("no program")
        self.assertIn(f"annex: {copy}: ", self.annex("show", path).stderr)

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w") as full:
            result = self.annex("show", self.raw, stdout=full)
        self.assertEqual((result.returncode, result.stderr), (1, "annex: standard output: No space left on device\n"))

    def test_wrong_arguments(self):
        self.refused(
            2, "unknown value 'size': live, blocks, total, total-blocks or pinned", "show", self.raw, "--by", "size"
        )
        self.refused(2, "--top", "show", self.raw, "--top", "0")
        self.refused(2, "RAW is required", "show")
        self.refused(2, "profile needs a program", *[])


class DiffTest(ProfileCase):
    def test_another_run_of_the_program(self):
        """Its modules lie elsewhere, and its call stacks are the same."""
        again = make_raw.run(harness.PROGRAM)
        self.assertNotEqual(again.stacks, self.program.stacks)
        raw = make_raw.sample(again)
        raw.live[0] = "1 7f0000001000 100 112 160.000 5000 4711 112 4"
        del raw.live[3]
        text = self.output("diff", self.raw, self.write("again.raw", raw.text()))
        self.assertIn("live -234.4 KiB, from 262.9 KiB to 28.6 KiB", text)
        grew, shrank = text.split("\n\n")[1:]
        self.assertRegex(
            grew, r"^grew \(1 of 1\)\n.*\n +\+9\.8 KiB +9\.8 KiB +19\.5 KiB +\+100  forest::Tree::make_leaf "
        )
        self.assertRegex(shrank, r"^shrank \(1 of 1\)\n.*\n-244\.1 KiB +244\.1 KiB +0 B +-1  \(anonymous")

    def test_nothing_changed(self):
        self.assertEqual(self.output("diff", self.raw, self.raw), "live 0 B, from 262.9 KiB to 262.9 KiB\n")


if __name__ == "__main__":
    harness.main()
