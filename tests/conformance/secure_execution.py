"""A program that gains rights when it starts takes nothing from the environment of whoever started it.

secure_execution.py PROGRAM     a program that Annex is linked into (secure_execution.cpp)

The program is run as it is, and made set-user-ID, set-group-ID, and with a file capability. Only the first may open
the file of ANNEX_STATS_FILE, print what ANNEX_VERBOSE asks for and keep to ANNEX_MAX_HEAP. Exit status: 0 passed,
1 failed, 77 nobody here can make such programs, or the system ignores what makes them so (an error where
ANNEX_REQUIRE_ALL is set).
"""

import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
NOBODY = 65534
CAP_NET_BIND_SERVICE = 10
VFS_CAP_REVISION_2, VFS_CAP_EFFECTIVE = 0x02000000, 1


def plain(program):
    program.chmod(0o755)


def set_user_id(program):
    os.chown(program, NOBODY, 0)
    program.chmod(0o4755)


def set_group_id(program):
    os.chown(program, 0, NOBODY)
    program.chmod(0o2755)


def file_capability(program):
    program.chmod(0o755)
    rights = struct.pack("<5I", VFS_CAP_REVISION_2 | VFS_CAP_EFFECTIVE, 1 << CAP_NET_BIND_SERVICE, 0, 0, 0)
    os.setxattr(program, "security.capability", rights)


KINDS = [  # what makes the program so, who runs it, whether it gains rights by that
    (plain, 0, False),
    (set_user_id, 0, True),
    (set_group_id, 0, True),
    (plain, NOBODY, False),
    (file_capability, NOBODY, True),
]


def run(original, make, user):
    """What the program said, and the statistics that it left, None where there are none."""
    with tempfile.TemporaryDirectory(prefix="annex-secure-") as name:
        place = Path(name)
        place.chmod(0o777)
        program = Path(shutil.copy(original, place / "program"))
        make(program)
        statistics = place / "statistics"
        environment = {
            "ANNEX_STATS": "json",
            "ANNEX_STATS_FILE": str(statistics),
            "ANNEX_VERBOSE": "1",
            "ANNEX_MAX_HEAP": "16M",
            "ANNEX_HUGE_PAGES": "a value that is warned of",
        }
        result = subprocess.run(
            [program], env=environment, capture_output=True, text=True, timeout=60,
            stdin=subprocess.DEVNULL, cwd="/", user=user, group=user, extra_groups=[],
        )  # fmt: skip
        return result, statistics.read_text() if statistics.exists() else None


def problems(original, make, user, secure):
    try:
        result, statistics = run(original, make, user)
    except OSError as why:
        yield SKIPPED, f"it can't be made or run: {why}"
        return
    said = result.stdout.strip()
    if result.returncode != 0:
        yield 1, f"it ended with {result.returncode}"
    if secure and said.startswith("plain"):
        yield SKIPPED, "the system gives it no rights (a filesystem mounted nosuid, no_new_privs, no such capability?)"
        return
    if said != ("secure, no limit" if secure else "plain, limited"):
        yield 1, f"it said '{said}'"
    if secure and result.stderr:
        yield 1, f"it printed: {result.stderr.strip()}"
    if secure and statistics is not None:
        yield 1, f"it wrote the file of ANNEX_STATS_FILE: {statistics.strip()}"
    lines = result.stderr.count("\n")  # of the value, the set-up and the limit
    if not secure and not (lines == 3 and "arena of" in result.stderr and statistics):
        yield 1, f"the environment has no effect, so this test shows nothing; it printed: {result.stderr.strip()}"


def main():
    worst = 0
    if os.geteuid() != 0:
        print("needs root, to make programs that gain rights")
        worst = SKIPPED
    for make, user, secure in KINDS if worst == 0 else ():
        found = list(problems(sys.argv[1], make, user, secure))
        told = "; ".join(text for _, text in found) or "as it should be"
        print(f"{make.__name__}, run by {'root' if user == 0 else 'nobody'}: {told}")
        for status, _ in found:
            worst = 1 if 1 in (worst, status) else status
    if worst == SKIPPED and os.environ.get("ANNEX_REQUIRE_ALL"):
        worst = 1
    return worst


sys.exit(main())
