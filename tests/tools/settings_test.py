#!/usr/bin/env python3
"""The library warns of variables that begin with ANNEX_ and are none of its settings. Those that the tests, the
laboratory and the tools read are not to be warned of: src/os/environment.cpp names them, and this compares."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
READ = re.compile(r"""(?:getenv\(\s*"|environ(?:\.get\(|\[)\s*["']|os\.getenv\(\s*["']|ENV\{|\$\{)(ANNEX_[A-Z0-9_]+)""")
CMAKE_VARIABLE = re.compile(r"\$\{ANNEX_")  # a CMakeLists' own variables look like a shell's

settings = set(
    re.findall(r'^ANNEX_OPTION\(\w+, "(ANNEX_\w+)"', (ROOT / "src/os/options.def").read_text(), re.MULTILINE)
)
source = (ROOT / "src/os/environment.cpp").read_text()
of_others = set(re.findall(r'"(ANNEX_\w+)"', re.search(r"kOfOthers\[\] = \{(.*?)\};", source, re.DOTALL)[1]))
read = set()
for folder in ("lab", "tests", "tools", "cli", "sim", "workloads", "Makefile"):
    place = ROOT / folder
    for path in [place] if place.is_file() else place.rglob("*"):
        is_text = path.suffix in (".c", ".cpp", ".h", ".py", ".sh", ".cmake", "") or path.name == "CMakeLists.txt"
        if not path.is_file() or not is_text or "__pycache__" in path.parts:
            continue
        text = path.read_text(errors="replace")
        if path.suffix == ".cmake" or path.name == "CMakeLists.txt":
            text = CMAKE_VARIABLE.sub("", text)
        read.update(READ.findall(text))

failed = False
for name in sorted(read - settings - of_others):
    failed = print(f"{name} is read here, and the library would warn of it") or True
for name in sorted(of_others - read):
    failed = print(f"{name} is read by nothing") or True
for name in sorted(of_others & settings):
    failed = print(f"{name} is a setting") or True
if not {"ANNEX_REQUIRE_ALL", "ANNEX_TEST_EMULATOR"} <= read or len(settings) < 10:
    failed = print("the search finds nothing") or True
sys.exit(failed)
