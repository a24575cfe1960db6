"""Where the figures of the documents come from: golden files, the table of size classes, constants of the sources.

All that needs no build: the golden files and the table are themselves compared with what is built, by tests.
"""

import re
from functools import cache
from pathlib import Path

INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
WORDS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight"}
PARTS = {2: "half", 3: "third", 4: "quarter", 5: "fifth", 6: "sixth", 7: "seventh", 8: "eighth", 16: "sixteenth"}


class Unknown(Exception):
    """A figure has no source any more; the text says where it was."""


class Truth:
    def __init__(self, root):
        self.root = Path(root)
        self._text = cache(lambda path: (self.root / path).read_text())

    def golden(self, flavour, path, count):
        """A count of a fast path, such as ("shared", "malloc", "loads")."""
        section = rf"^path: {path}\b[^\n]*\n(?:(?!path:)[^\n]*\n)*?{count}: (\d+)$"
        return self.found(f"tests/golden/{flavour}.txt", section)

    def thread_local(self, flavour):
        return self.found(f"tests/golden/{flavour}.txt", r"^thread-local bytes: (\d+)$")

    def classes(self):
        """The rows of docs/size-classes.md: class, block, smallest request, waste, slab in KiB, and so on."""
        rows = re.findall(r"^\| (\d+ \|.*) \|$", self._text("docs/size-classes.md"), re.MULTILINE)
        if not rows:
            raise Unknown("docs/size-classes.md has no table")
        return [[float(cell) if "." in cell else int(cell) for cell in row.split("|")] for row in rows]

    def class_of(self, bytes):
        return next(row for row in self.classes() if row[1] >= bytes)

    def found(self, path, pattern):
        """The number that a pattern's group holds in a file; the pattern is there once."""
        matches = re.findall(pattern, self._text(path), re.MULTILINE)
        if len(matches) != 1:
            raise Unknown(f"{path} has {len(matches)} times: {pattern}")
        return int(matches[0])

    def constant(self, path, name):
        """A constexpr integer of a file, or of one that it includes; its value may be made of others."""
        found = self._definition(path, name, set())
        if found is None:
            raise Unknown(f"{path} defines no constant {name}")
        path, text = found
        text = re.sub(r"\b(?:size_t|u?int\d+_t)\{(\w+)\}", r"(\1)", text)
        text = re.sub(r"\b(\d+)[uUlL]*\b", r"\1", text).replace("/", "//")
        text = re.sub(r"\b[A-Za-z_]\w*", lambda word: str(self.constant(path, word[0])), text)
        if not re.fullmatch(r"[\d\s()+*/<>-]+", text):
            raise Unknown(f"{path}: {name} is {text}, which is beyond tools/truth.py")
        return eval(text, {"__builtins__": {}})

    def _definition(self, path, name, seen):
        seen.add(path)
        text = self._text(path)
        match = re.search(rf"\bconstexpr [\w:]+ {name} = ([^;]+);", text)
        if match:
            return path, match[1]
        for included in INCLUDE.findall(text):
            below = f"src/{included}"
            if below not in seen and (self.root / below).is_file():
                found = self._definition(below, name, seen)
                if found:
                    return found
        return None


def size(bytes):
    """1024 as "1 KiB": in the largest unit that divides it."""
    for shift, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if bytes and bytes % (1 << shift) == 0:
            return f"{bytes >> shift} {unit}"
    return str(bytes)


def kib(bytes):
    return str(bytes // 1024)
