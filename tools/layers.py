#!/usr/bin/env python3
"""Checks the includes of src/ and sim/: each folder includes only what stands below it, and nothing goes in a circle.
Within a folder, components stand on floors: one that includes others of its folder is a floor above the highest.

    tools/layers.py [ROOT]      one line for each include that is wrong; exit status 1 where there is any

The order is written here; the documents that tell it are compared with it. A circle counts between components too: x.h
and x.cpp are one component, so that x.cpp including y.h and y.cpp including x.h is a circle.
"""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
SUFFIXES = (".h", ".c", ".cpp", ".def")


@dataclass
class Tree:
    folder: str
    places: tuple  # where its includes are looked up
    layers: tuple  # from the top; folders in one entry stand side by side and don't know each other
    document: tuple = ()  # (file, pattern of a line that names a folder, whether from the top)
    table: tuple = ()  # (file, folders): has a row for each component of these folders
    most_floors: dict = field(default_factory=dict)  # by folder, where that is said


# "." is the tree's own folder. annex is the public interface, include/annex, which the library's inside doesn't know.
TREES = (
    Tree(
        "src",
        ("src", "include"),
        (
            ("experiments",),
            ("entry",),
            ("observe",),
            ("annex",),
            ("front",),
            ("remote", "support", "harden", "sample", "profile"),
            ("core",),
            ("pages",),
            ("os",),
            ("policy",),
        ),
        ("docs/architecture.md", r"^\| \w+ \| `src/(\w+)` \|", True),
        table=("docs/architecture.md", ("pages", "core")),
        most_floors={"core": 7, "pages": 7},
    ),
    Tree(
        "sim",
        ("sim",),
        ((".",), ("qemu",), ("guest",), ("decode",), ("hardware",), ("machine",)),
        ("sim/CMakeLists.txt", r"^#   (\w+)/ ", False),
    ),
)

# Includes that close a circle of components, and why they may for now. One that closes none any more is an error.
EXCEPTIONS = {
    ("sim/machine/core.cpp", "sim/machine/core_stages.h"): "core.cpp's own inline parts, in a file for their length",
}


@dataclass(frozen=True)
class Include:
    source: str
    line: int
    target: str

    def __str__(self):
        return f"{self.source}:{self.line} includes {self.target}"


def folder_of(path, places):
    """The first folder of a path within the place that it was found in."""
    inside = next(path.removeprefix(place + "/") for place in places if path.startswith(place + "/"))
    return inside.split("/")[0] if "/" in inside else "."


def includes_of(root, tree):
    """The tree's includes of files of the house, and what is wrong with how some are written."""
    found, wrong = [], []
    for path in sorted((root / tree.folder).rglob("*")):
        if path.suffix not in SUFFIXES:
            continue
        source = path.relative_to(root).as_posix()
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            target = next((f"{place}/{match[2]}" for place in tree.places if (root / place / match[2]).is_file()), None)
            if target and ".." not in match[2].split("/"):
                found.append(Include(source, number, target))
            elif target or match[1] == '"':
                wrong.append(f"{source}:{number}: {match[2]} is not the path of a file from {' or '.join(tree.places)}")
    if not found:
        wrong.append(f"{tree.folder}: there are no includes to check")
    return found, wrong


def wrong_layers(tree, includes):
    """Includes of what is above or beside, and folders that have no place in the order."""
    rank = {folder: number for number, folders in enumerate(tree.layers) for folder in folders}
    strange = set()
    for include in includes:
        source, target = (folder_of(path, tree.places) for path in (include.source, include.target))
        for folder in sorted({source, target} - set(rank) - strange):
            strange.add(folder)
            yield f"{include.source}:{include.line}: {folder} has no place among the layers of {tree.folder}"
        if source == target or {source, target} & strange:
            continue
        if rank[source] >= rank[target]:
            where = "above" if rank[source] > rank[target] else "beside"
            yield f"{include.source}:{include.line}: includes {include.target}: {target} stands {where} {source}"


def wrong_floors(tree, includes):
    """Folders with more floors than they may have, and what stands on what there."""
    below = {}
    for include in includes:
        source, target = component(include.source), component(include.target)
        if source != target and folder_of(source, tree.places) == folder_of(target, tree.places):
            below.setdefault(source, set()).add(target)

    def tower(one, above=()):  # the longest one that ends in this component; a circle is told of elsewhere
        towers = (tower(other, (*above, one)) for other in sorted(below.get(one, ())) if other not in above)
        return (*max(towers, key=len, default=()), one)

    for folder, most in tree.most_floors.items():
        towers = (tower(one) for one in sorted(below) if folder_of(one, tree.places) == folder)
        highest = max(towers, key=len, default=())
        if len(highest) > most:
            names = " < ".join(Path(one).name for one in highest)
            yield f"{tree.folder}: {folder} has {len(highest)} floors, more than {most}: {names}"


def circles(includes, unit):
    """The includes of each circle; unit(path) says what counts as one."""
    between = [i for i in includes if unit(i.source) != unit(i.target)]
    graph = graph_of(between, unit)
    reach = {one: reachable(graph, one) for one in graph}
    seen = set()
    for one in graph:
        if one in reach[one] and one not in seen:
            members = {other for other in reach[one] if one in reach.get(other, ())}
            seen |= members
            yield [i for i in between if {unit(i.source), unit(i.target)} <= members]


def graph_of(includes, unit):
    graph = {}
    for include in includes:
        graph.setdefault(unit(include.source), set()).add(unit(include.target))
    return graph


def reachable(graph, start):
    found, ahead = set(), [start]
    while ahead:
        for following in graph.get(ahead.pop(), ()):
            if following not in found:
                found.add(following)
                ahead.append(following)
    return found


def component(path):
    return path.rsplit(".", 1)[0]


def wrong_circles(includes, exceptions):
    for circle in circles(includes, lambda path: path):
        yield "files include each other in a circle: " + "; ".join(map(str, circle))
    rest = [i for i in includes if (i.source, i.target) not in exceptions]
    for circle in circles(rest, component):
        yield "components include each other in a circle: " + "; ".join(map(str, circle))
    graph = graph_of(rest, component)
    present = {(i.source, i.target) for i in includes}
    for source, target in exceptions:
        if (source, target) not in present or component(source) not in reachable(graph, component(target)):
            yield f"{source} including {target} closes no circle any more: take it out of EXCEPTIONS in tools/layers.py"


def wrong_document(root, tree):
    """The document lists the tree's folders in another order."""
    name, pattern, from_the_top = tree.document
    told = re.findall(pattern, (root / name).read_text(), re.MULTILINE)
    folders = [folder for side_by_side in tree.layers for folder in side_by_side if folder != "."]
    held = [folder for folder in folders if (root / tree.folder / folder).is_dir()]
    if told != (held if from_the_top else held[::-1]):
        yield f"{name}: its order of {tree.folder} is {' '.join(told)}; from the top it is {' '.join(held)}"


def wrong_table(root, tree):
    """A component of certain folders has no row in the document's table, or a row is of none."""
    if not tree.table:
        return
    name, folders = tree.table
    told = set(re.findall(r"^\| `(\w+/\w+)`", (root / name).read_text(), re.MULTILINE))
    told = {row for row in told if row.split("/")[0] in folders}
    held = {
        f"{folder}/{path.stem}"
        for folder in folders
        for path in (root / tree.folder / folder).glob("*")
        if path.suffix in SUFFIXES
    }
    yield from (f"{name}: no row of the table tells of {tree.folder}/{one}" for one in sorted(held - told))
    yield from (f"{name}: a row of the table tells of {one}, which is not there" for one in sorted(told - held))


def problems(root, trees, exceptions):
    wrong, everything = [], []
    for tree in trees:
        includes, unreadable = includes_of(root, tree)
        wrong += unreadable
        wrong += wrong_layers(tree, includes)
        wrong += wrong_floors(tree, includes)
        wrong += wrong_table(root, tree)
        if tree.document:
            wrong += wrong_document(root, tree)
        everything += includes
    return wrong + list(wrong_circles(everything, exceptions))


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)
    wrong = problems(root, TREES, EXCEPTIONS)
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
