"""Generates the programs' inputs, the same on every machine: seeded streams, no clock, no names of this machine."""

import hashlib
import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from annex_lab import paths
from annex_lab.programs.model import Context

SCRIPTS = paths.PACKAGE / "inputs"  # what interpreters run, some of it to make inputs
SYSTEM_PYTHON = "/usr/bin/python3"  # which sees Debian's modules

GIT_ENV = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_PAGER": "cat",
    "GIT_OPTIONAL_LOCKS": "0",
}


def folder(data: Path) -> Path:
    """Where inputs lie: a folder that goes with the generators' text, so that a changed one makes its inputs anew."""
    generators = Path(__file__).read_bytes() + (SCRIPTS / "xapian_index.py").read_bytes()
    here = data / hashlib.sha256(generators).hexdigest()[:12]
    for other in data.glob("*") if data.exists() else []:
        if other != here:
            shutil.rmtree(other, ignore_errors=True) if other.is_dir() else other.unlink()
    return here


def place(context: Context, name: str, work: int) -> Path:
    """Where the input of that name and amount of work lies."""
    stem, dot, suffix = name.partition(".")
    return context.data / f"{stem}-{context.work(work)}{dot}{suffix}"


def ensure(path: Path, make: Callable[[Path], None]) -> None:
    """Makes the input unless it is there; never leaves half of one."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name("part-" + path.name)
    if part.is_dir():
        shutil.rmtree(part)
    part.unlink(missing_ok=True)
    make(part)
    os.rename(part, path)


def words(count: int, seed: int = 1) -> list[str]:
    """Distinct made-up words of 2 to 12 letters."""
    stream = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        found["".join(stream.choice("etaoinshrdlucmfw") for _ in range(stream.randint(2, 12)))] = None
    return list(found)


def text(path: Path, length: int) -> None:
    """Lines of words, some far more common than others, as in a language; about `length` bytes."""
    stream = random.Random(2)
    vocabulary = words(20000)
    with path.open("w") as file:
        written = 0
        while written < length:
            line = " ".join(vocabulary[int(len(vocabulary) * stream.random() ** 4)] for _ in range(12)) + "\n"
            file.write(line)
            written += len(line)


def search_index(path: Path, length: int) -> None:
    """A Xapian index of a text of about `length` bytes, a document of every 12 lines."""
    source = path.with_name(path.name + ".txt")
    text(source, length)
    script = SCRIPTS / "xapian_index.py"
    subprocess.run([SYSTEM_PYTHON, str(script), str(source), str(path), "12"], check=True)
    source.unlink()


def sql_script(path: Path, rows: int) -> None:
    path.write_text(f"""
CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT, city TEXT, born INTEGER, note TEXT);
CREATE TABLE visit(person INTEGER, place TEXT, day INTEGER);
BEGIN;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
INSERT INTO person SELECT i, 'person ' || (i * 7919 % {rows}), 'city ' || (i * 31 % 997), 1900 + i % 100,
  printf('%.*c', i % 90, 'x') || hex(i * 2654435761 % 4294967296) FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows * 2})
INSERT INTO visit SELECT i * 40503 % {rows}, 'place ' || (i * 17 % 503), i % 365 FROM n;
COMMIT;
CREATE INDEX by_city ON person(city, born);
CREATE INDEX by_person ON visit(person);
SELECT city, count(*), avg(born), max(name) FROM person GROUP BY city ORDER BY 2 DESC, 1 LIMIT 20;
SELECT v.place, count(DISTINCT p.city), min(p.name) FROM visit v JOIN person p ON p.id = v.person
  GROUP BY v.place ORDER BY 2 DESC, 1 LIMIT 20;
UPDATE person SET note = upper(note) || ' ' || name WHERE born % 3 = 0;
DELETE FROM visit WHERE day % 5 = 0;
SELECT length(group_concat(note, ',')), count(*) FROM person;
SELECT city, json_group_array(json_object('name', name, 'born', born)) FROM person WHERE id % 11 = 0
  GROUP BY city ORDER BY city LIMIT 30;
SELECT name, rank() OVER (PARTITION BY born ORDER BY city, name) AS place FROM person
  ORDER BY place DESC, name LIMIT 20;
SELECT count(*) FROM person a JOIN person b ON a.city = b.city AND a.born = b.born AND a.id < b.id;
""")


def cxx_source(path: Path, classes: int) -> None:
    """A preprocessed C++ source: much of the standard library, and templates and classes of its own."""
    headers = ["algorithm", "functional", "map", "sstream", "string", "unordered_map", "vector"]
    parts = [f"#include <{header}>" for header in headers]
    for i in range(classes):
        parts.append(f"""
template <typename K, typename V> struct Table{i} {{
  std::map<K, std::vector<V>> rows;
  std::unordered_map<std::string, std::function<V(const V&)>> actions;
  void add(K key, V value) {{ rows[key].push_back(value); }}
  V sum(K key, V start) const {{
    auto found = rows.find(key);
    if (found == rows.end()) return start;
    for (const V& v : found->second) start = start + v;
    return start;
  }}
  template <typename F> void each(F f) {{ for (auto& [k, vs] : rows) {{ std::sort(vs.begin(), vs.end()); f(k, vs); }} }}
}};
int use{i}(const std::string& text) {{
  Table{i}<std::string, long> a;
  Table{i}<int, std::string> b;
  a.add(text, {i});
  b.add({i}, text);
  a.actions["x"] = [&](const long& v) {{ return v * {i + 2} + static_cast<long>(text.size()); }};
  std::ostringstream out;
  a.each([&](const auto& k, auto& vs) {{ out << k << vs.size(); }});
  b.each([&](const auto& k, auto& vs) {{ out << k << (vs.empty() ? "" : vs[0]); }});
  return static_cast<int>(a.sum(text, {i}) + static_cast<long>(out.str().size()) + a.actions["x"](2));
}}""")
    source = path.with_suffix(".cc")
    source.write_text("\n".join(parts))
    subprocess.run(["g++", "-std=gnu++17", "-E", "-P", str(source), "-o", str(path)], check=True)
    source.unlink()


def _records(count: int) -> list[dict]:
    stream = random.Random(4)
    vocabulary = words(3000)
    return [
        {
            "id": i,
            "name": f"{stream.choice(vocabulary)} {stream.choice(vocabulary)}",
            "group": stream.choice(vocabulary[:200]),
            "price": stream.randint(1, 100000) / 100,
            "tags": [stream.choice(vocabulary) for _ in range(stream.randint(0, 8))],
            "note": " ".join(stream.choice(vocabulary) for _ in range(stream.randint(3, 30))),
        }
        for i in range(count)
    ]


def json_document(path: Path, records: int) -> None:
    path.write_text(json.dumps(_records(records)))


def xml_document(path: Path, records: int) -> None:
    with path.open("w") as file:
        file.write('<?xml version="1.0"?>\n<store>\n')
        for record in _records(records):
            tags = "".join(f"<tag>{tag}</tag>" for tag in record["tags"])
            file.write(
                f'<item id="{record["id"]}" group="{record["group"]}"><name>{record["name"]}</name>'
                f"<price>{record['price']}</price><tags>{tags}</tags><note>{record['note']}</note></item>\n"
            )
        file.write("</store>\n")


def smt_problem(path: Path, nodes: int) -> None:
    """A random graph to be coloured with three colours; the solver's count of steps is printed and always the same."""
    stream = random.Random(11)
    lines = []
    for i in range(nodes):
        lines += [f"(declare-const v{i}_{c} Bool)" for c in range(3)]
        lines.append(f"(assert (or v{i}_0 v{i}_1 v{i}_2))")
    for _edge in range(int(nodes * 2.1)):
        a, b = stream.sample(range(nodes), 2)
        lines += [f"(assert (or (not v{a}_{c}) (not v{b}_{c})))" for c in range(3)]
    lines += ["(check-sat)", "(get-info :rlimit)"]
    path.write_text("\n".join(lines) + "\n")


def postscript(path: Path, pages: int) -> None:
    stream = random.Random(6)
    vocabulary = words(400)
    with path.open("w") as file:
        file.write("%!PS-Adobe-3.0\n/Helvetica findfont 9 scalefont setfont\n")
        for _page in range(pages):
            for _path in range(700):
                points = " ".join(f"{stream.randint(0, 600)} {stream.randint(0, 800)} lineto" for _ in range(6))
                file.write(f"newpath {stream.randint(0, 600)} {stream.randint(0, 800)} moveto {points} ")
                file.write("closepath fill\n" if stream.random() < 0.2 else "stroke\n")
            for line in range(80):
                text_line = " ".join(stream.choice(vocabulary) for _ in range(14))
                file.write(f"20 {10 + line * 10} moveto ({text_line}) show\n")
            file.write("/d 200 dict def 0 1 3000 { dup 20 string cvs exch pop pop } for showpage\n")


def git_repository(path: Path, commits: int) -> None:
    """A bare repository with that many commits to 300 text files, written by git fast-import."""
    stream = random.Random(8)
    vocabulary = words(2000)

    def fresh_line() -> str:
        return " ".join(stream.choice(vocabulary) for _ in range(8)) + "\n"

    files = {f"dir{i % 17}/file{i}.txt": [fresh_line() for _ in range(80)] for i in range(300)}
    out: list[bytes] = []
    names = list(files)
    for commit in range(commits):
        changed = names if commit == 0 else stream.sample(names, 4)
        message = f"change {commit}\n\n{fresh_line()}".encode()
        out.append(b"commit refs/heads/main\n")
        out.append(f"committer A Name <name@example.org> {1700000000 + commit * 60} +0000\n".encode())
        out.append(b"data %d\n%s\n" % (len(message), message))
        for name in changed:
            lines = files[name]
            for _ in range(6):
                lines[stream.randrange(len(lines))] = fresh_line()
            lines.insert(stream.randrange(len(lines)), fresh_line())
            content = "".join(lines).encode()
            out.append(b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(content), content))
    env = {**os.environ, **GIT_ENV}
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(path)], check=True, env=env)
    subprocess.run(["git", "-C", str(path), "fast-import", "--quiet"], input=b"".join(out), check=True, env=env)


def text_tree(path: Path, files: int) -> None:
    """Folders of text files of uneven length."""
    stream = random.Random(9)
    vocabulary = words(20000)
    for i in range(files):
        folder = path / f"dir{i % 37}" / f"sub{i % 5}"
        folder.mkdir(parents=True, exist_ok=True)
        lines = (" ".join(stream.choices(vocabulary, k=10)) for _ in range(stream.randint(10, 300)))
        (folder / f"file{i}.txt").write_text("\n".join(lines) + "\n")
