"""annex profile convert: each format is read again by somebody else, pprof's by a decoder of the test's own and by
pprof itself."""

import gzip
import json
import os
import re
import shutil
import subprocess
from collections import Counter

import decode
import harness
import make_raw
from harness import ProfileCase

GO = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")


def names(sample):
    return [function["name"] for location in sample["locations"] for function, _line in location["lines"]]


class PprofTest(ProfileCase):
    def setUp(self):
        self.path = self.converted("pprof")
        self.profile = decode.read(self.path)

    def test_head(self):
        types = "alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes pinned_space/bytes"
        self.assertEqual(["/".join(kind) for kind in self.profile["types"]], types.split())
        self.assertEqual(self.profile["default"], "inuse_space")
        self.assertEqual((self.profile["period_type"], self.profile["period"]), (("space", "bytes"), 524288))
        self.assertEqual(self.profile["time"], 1_795_000_000 * 10**9)
        self.assertEqual(self.profile["duration"], 12_500_000_000)

    def test_values(self):
        values = [sample["values"] for sample in self.profile["samples"]]
        self.assertEqual(values[0], [1000, 100000, 100, 10000, 60 * 1024 + 40 * 2048 + 40 * 4096])
        self.assertEqual(values[1], [251, 75150, 11, 3150, 4301])
        self.assertEqual(values[2], [4, 800000, 1, 250000, 225280])
        self.assertEqual(values[3], [40, 12000, 21, 6090, 0])  # its page is not resident

    def test_labels(self):
        self.assertEqual(self.profile["samples"][0]["labels"], {"request": "/index", "user": "a b"})
        self.assertEqual(self.profile["samples"][1]["labels"], {})

    def test_functions(self):
        inlined, template, last, library = map(names, self.profile["samples"])
        self.assertEqual(
            inlined[:4], ["forest::Tree::make_leaf()", "forest::Tree::make_branch()", "forest::Tree::grow(int)", "main"]
        )
        self.assertEqual(template[0], "main::{lambda}::operator()")
        self.assertIn(
            "long forest::fill<long>(std::vector<long, std::allocator<long> >*, std::function<void ()> const&)",
            template,
        )
        # give_up ends in its call: what is behind it is another function.
        self.assertEqual(last[:3], ["(anonymous namespace)::record_and_leave", "give_up()", "main"])
        self.assertRegex(library[1], r"^libsample\.so\+0x[0-9a-f]+$")
        self.assertEqual(
            [library[0], library[2], library[3], library[-1]],
            ["plain_c", "call_from_library", "main", "0x7fff12345678"],
        )

    def test_inlined_functions_share_a_location(self):
        lines = self.profile["samples"][0]["locations"][0]["lines"]
        self.assertEqual(lines[0][0]["system"], "_ZN6forest4Tree9make_leafEv")
        source = (harness.SOURCE / "sample_program.cpp").read_text().splitlines()
        told = [source[line - 1].strip() for _function, line in lines]
        self.assertEqual(told, ["record();", "make_leaf();", "make_branch();"])
        starts = [source[function["line"] - 1].strip() for function, _line in lines]
        self.assertEqual(
            [start.split("(")[0].split()[-1] for start in starts], ["make_leaf", "make_branch", "Tree::grow"]
        )
        self.assertTrue(all(function["file"].endswith("sample_program.cpp") for function, _line in lines))

    def test_mappings(self):
        for mapping, module in zip(self.profile["mappings"], self.program.modules, strict=True):
            self.assertEqual(
                (mapping["start"], mapping["limit"], mapping["offset"]), (module.start, module.end, module.offset)
            )
            self.assertEqual((mapping["file"], mapping["build_id"]), (module.path, module.build_id.strip("-")))
            self.assertEqual(mapping["has"], [1, 1, 1, 1])
        first = self.profile["samples"][0]["locations"][0]
        self.assertEqual(first["address"], self.program.stacks["inlined"][0] - 1)
        self.assertEqual(first["mapping"]["file"], str(harness.PROGRAM))
        self.assertIsNone(self.profile["samples"][3]["locations"][-1]["mapping"])

    def test_the_allocator_s_own_frames_are_dropped(self):
        raw = make_raw.sample(self.program)
        self.program.modules[-1:-1] = [make_raw.Module(0x1000, 0x2000, 0, "libannex-solo.so.0.1.0", "-")]
        self.addCleanup(self.program.modules.remove, self.program.modules[-2])
        number = len(self.program.modules) - 1
        own = f"{number}:1234 {number}:1300 "
        raw.sites[1] = raw.sites[1].replace("0 0 0 1:", f"0 0 0 {own}1:")
        raw.sites[2] = f"3 0 3 4.000 800000 3.000 0 0 0 3.000 0 0 0 0 {own}".strip()
        samples = decode.read(self.converted("pprof", raw=self.write("own.raw", raw.text())))["samples"]
        self.assertEqual(names(samples[1])[0], "main::{lambda}::operator()")
        self.assertEqual(names(samples[2])[0], "libannex-solo.so.0.1.0+0x233")  # there is nothing else

    def pprof(self, *options):
        if not GO:
            self.skipTest("go is not here (golang-go): pprof itself does not read the profile")
        environment = {
            **os.environ,
            "PPROF_TMPDIR": str(self.dir),
            "PPROF_BINARY_PATH": str(self.dir),
            "GOTOOLCHAIN": "local",
        }
        command = [GO, "tool", "pprof", *options, self.path]
        # From elsewhere: of a path in which the current directory's name occurs, pprof takes what follows it.
        result = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=280, cwd=self.dir)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_pprof_itself(self):
        top = self.pprof("-top", "-nodefraction=0")
        self.assertIn("Type: inuse_space\n", top)
        self.assertIn("100% of 262.93kB total", top)
        self.assertRegex(top, r"(?m)^ *9\.77kB .* forest::Tree::make_leaf\(\) \(inline\)$")
        self.assertRegex(top, r"(?m)^ *244\.14kB .* \(anonymous namespace\)::record_and_leave$")
        self.assertIn("300kB", self.pprof("-top", "-sample_index=pinned_space"))
        self.assertRegex(self.pprof("-top", "-sample_index=alloc_objects"), r"(?m)^ *1000 .* forest::Tree::make_leaf")
        self.assertRegex(self.pprof("-tags"), r"user: .*\n +9\.(77|8)kB .*: a b\n")
        lines = self.pprof("-list=grow", "-sample_index=inuse_space")
        self.assertRegex(lines, r"(?m)^ *\. +9\.77kB +\d+: +make_branch\(\);$")


class TextFormatsTest(ProfileCase):
    def stacks(self, *arguments):
        return dict(
            line.rsplit(" ", 1)
            for line in self.output("convert", self.raw, "--to", "collapsed", *arguments).splitlines()
        )

    def test_collapsed(self):
        stacks = self.stacks()
        self.assertEqual(sorted(map(int, stacks.values())), [3150, 6090, 10000, 250000])
        tree = next(stack for stack in stacks if stack.endswith("forest::Tree::make_leaf()"))
        self.assertEqual(
            tree.split(";")[-4:],
            ["main", "forest::Tree::grow(int)", "forest::Tree::make_branch()", "forest::Tree::make_leaf()"],
        )
        self.assertEqual(stacks[tree], "10000")
        self.assertEqual(sorted(map(int, self.stacks("--value", "total-blocks").values())), [4, 40, 251, 1000])
        self.assertEqual(len(self.stacks("--value", "pinned")), 3)  # one has none

    def test_collapsed_adds_equal_stacks_up(self):
        raw = make_raw.sample(self.program)
        raw.sites.append(raw.sites[0].replace("1 1 10", "5 0 10"))
        text = self.output("convert", self.write("twice.raw", raw.text()), "--to", "collapsed", "--value", "total")
        self.assertIn("forest::Tree::make_leaf() 200000\n", text)

    def test_speedscope(self):
        made = json.loads(self.converted("speedscope", "--value", "pinned").read_text())
        self.assertEqual(made["$schema"], "https://www.speedscope.app/file-format-schema.json")
        self.assertEqual(made["activeProfileIndex"], 4)
        titles = [(profile["name"], profile["unit"], profile["type"]) for profile in made["profiles"]]
        bytes_, blocks = ("bytes", "sampled"), ("none", "sampled")
        self.assertEqual(
            titles,
            [
                ("live bytes", *bytes_),
                ("live blocks", *blocks),
                ("total bytes", *bytes_),
                ("total blocks", *blocks),
                ("pinned bytes", *bytes_),
            ],
        )
        frames = [frame["name"] for frame in made["shared"]["frames"]]
        self.assertEqual(Counter(frames)["main"], 1)  # it calls from four lines, and speedscope adds up by frame
        for profile in made["profiles"]:
            self.assertEqual(len(profile["samples"]), len(profile["weights"]))
            self.assertAlmostEqual(profile["endValue"] - profile["startValue"], sum(profile["weights"]))
        stack = [frames[frame] for frame in made["profiles"][0]["samples"][0]]
        self.assertEqual(stack[-2:], ["forest::Tree::make_branch()", "forest::Tree::make_leaf()"])
        self.assertEqual(made["profiles"][0]["weights"][0], 10000)

    def test_document(self):
        made = json.loads(self.output("convert", self.raw, "--to", "json"))
        self.assertEqual(made["format"], "annex-profile-document 1")
        self.assertEqual(
            [value["name"] for value in made["values"]], ["live", "blocks", "total", "total-blocks", "pinned"]
        )
        self.assertEqual(made["values"][0]["sum"], 269240)
        self.assertEqual(made["sites"][0]["labels"], [["request", "/index"], ["user", "a b"]])
        self.assertEqual(made["sites"][0]["lifetimes"], [500, 0, 300, 0, 0, 100, 0, 0])
        innermost = made["frames"][made["sites"][0]["frames"][-1]]
        self.assertEqual((innermost["short"], innermost["module"]), ("forest::Tree::make_leaf", 0))
        self.assertEqual(made["heap"]["free_in_slabs"], 131072 - 100000)
        keys = re.findall(
            r"^    (\w+)  +", (harness.SOURCE.parents[2] / "docs/profiling-formats.md").read_text(), re.MULTILINE
        )
        self.assertEqual(sorted(keys), sorted(made))

    def test_short_names(self):
        """By the document of a profile whose functions are only said by a symbol table."""
        source = """
            namespace a {
            template <class T> struct B { void f(int); struct C { void operator()(T); bool operator<(C); }; };
            }
            template <> void a::B<int (*)(char)>::f(int) {}
            template <> void a::B<int>::C::operator()(int) {}
            template <> bool a::B<int>::C::operator<(a::B<int>::C) { return true; }
            template <class T> a::B<T> make(T, void (*)(int)) { return {}; }
            template a::B<long> make<long>(long, void (*)(int));
            namespace { struct D { operator long(); }; __attribute__((noinline)) D::operator long() { return 1; } }
            long all() { return D(); }
            int (*lambda)(int) = [](int) { return 1; };
        """
        library = self.dir / "names.so"
        flags = ["-x", "c++", "-O1", "-g0", "-shared", "-fPIC", "-", "-o", library]
        subprocess.run(["c++", *flags], input=source, text=True, check=True)
        symbols = subprocess.run(["nm", "--defined-only", library], capture_output=True, text=True, check=True).stdout
        functions = [line.split() for line in symbols.splitlines() if " _Z" in line and line.split()[1] in "tTwW"]
        module = make_raw.Module(0x10000, 0x20000, 0, str(library), make_raw.build_id(str(library)))
        raw = make_raw.Raw(make_raw.Program([module], {}))
        raw.sites = [
            f"{i} 0 1 1.000 1 0 0 0 0 0 0 0 0 0 1:{0x10000 + int(words[0], 16) + 1:x}"
            for i, words in enumerate(functions, 1)
        ]
        made = json.loads(self.output("convert", self.write("names.raw", raw.text()), "--to", "json"))
        self.assertEqual(
            sorted(frame["short"] for frame in made["frames"]),
            sorted(
                [
                    "a::B::f",
                    "a::B::C::operator()",
                    "a::B::C::operator<",
                    "make",
                    "(anonymous namespace)::D::operator long",
                    "all",
                    "lambda::{lambda}::_FUN",
                ]
            ),
        )

    def test_wrong_arguments(self):
        self.refused(
            2, "unknown format 'svg': pprof, collapsed, speedscope, html or json", "convert", self.raw, "--to", "svg"
        )
        self.refused(2, "unknown value 'x'", "convert", self.raw, "--to", "html", "--value", "x")
        self.refused(2, "--to is required", "convert", self.raw)

    def test_output_that_cannot_be_written(self):
        for format in ("pprof", "collapsed", "speedscope", "html", "json"):
            self.refused(
                1, "/dev/full: No space left on device", "convert", self.raw, "--to", format, "-o", "/dev/full"
            )
        self.refused(
            1, "none/x: No such file or directory", "convert", self.raw, "--to", "json", "-o", self.dir / "none/x"
        )

    def test_packed_output_is_the_same_again(self):
        first, second = self.converted("pprof").read_bytes(), self.converted("pprof").read_bytes()
        self.assertEqual(first, second)
        self.assertGreater(len(gzip.decompress(first)), 100)


if __name__ == "__main__":
    harness.main()
