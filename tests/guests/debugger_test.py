"""A debugger calls functions of the library, and of the program, which need memory: debugger_test.py PROGRAM [LIBRARY].

gdb takes the memory for a string literal from the malloc that it finds, and calls functions by their types.
"""

import os
import re
import shutil
import subprocess
import sys

SKIPPED = 77
CALLS = {  # what is printed
    'print (int)strlen("four")': r"= 4",
    "print (void*)malloc(100)": r"= \(void \*\) 0x[0-9a-f]+",
    "call free($)": "",
    "print malloc(100)": r"= \(void \*\) 0x[0-9a-f]+",
    "print realloc($, 5000)": r"= \(void \*\) 0x[0-9a-f]+",
    "print malloc_usable_size($) >= 5000": r"= (1|true)",
    "print free($$)": r"= void",
    "print calloc(2, 50) != 0": r"= (1|true)",
    "print aligned_alloc(64, 100) != 0": r"= (1|true)",
    "print malloc_trim(0) >= 0": r"= (1|true)",
    "print annex_purge() >= 0": r"= (1|true)",
}


# gdb 16 takes the name of a function that is a structure's too for the structure's (13 does not).
GDB = subprocess.run(["gdb", "--version"], capture_output=True, text=True).stdout if shutil.which("gdb") else ""
if (version := re.search(r" (\d+)\.\d+", GDB)) and int(version[1]) < 14:
    CALLS["print mallinfo2().arena > 0"] = r"= (1|true)"


def gdb(program, library, commands):
    words = ["gdb", "-batch", "-nx", "-ex", "set debuginfod enabled off", "-ex", "set disable-randomization off"]
    words += ["-ex", f"set environment LD_PRELOAD {library}"] if library else []
    words += [word for command in commands for word in ("-ex", command)]
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LC_ALL": "C"}
    return subprocess.run(
        [*words, program], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )


program, library = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
if shutil.which("gdb") is None:
    required = "ANNEX_REQUIRE_ALL" in os.environ
    print("gdb is not here (tools/apt-test.txt)")
    sys.exit(1 if required else SKIPPED)
commands = []
for place, go in (("main", "run"), ("free", "continue")):  # in the program's language, and in the library's
    commands += [f"tbreak {place}", go]
    for at, command in enumerate(CALLS):
        commands += [f"echo {place} {at}:", command, "echo \\n"]
result = gdb(program, library, [*commands, "continue"])
if re.search(r"ptrace: Operation not permitted", result.stderr):
    print(f"No process may be debugged here: {result.stderr.strip()}")
    sys.exit(SKIPPED)
answers = dict(re.findall(r"^(\w+ \d+):(.*)$", result.stdout, re.MULTILINE))
failed = "exited normally" not in result.stdout
for place in ("main", "free"):
    for at, (command, expected) in enumerate(CALLS.items()):
        answer = answers.get(f"{place} {at}", "nothing").strip()
        if not re.fullmatch(rf"(\$\d+ )?{expected}", answer):
            print(f"in {place}: {command}: {answer!r}")
            failed = True
if failed:
    print(result.stdout, result.stderr)
sys.exit(failed)
