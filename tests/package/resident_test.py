"""What a process keeps resident of a library's file that it preloads: resident_test.py LIBRARY...

The code that every process runs, with its constants, fits into 64 KiB at the start of the library (src/layout.ld).
Linux maps the pages of a file around one that is touched, within a window of 64 KiB; so nothing else is resident in a
program that only allocates and frees.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

WINDOW = 64 << 10


def resident(library):
    """The address and the resident bytes of the library's code in a small program, which prints its own mappings."""
    result = subprocess.run(
        ["cat", "/proc/self/smaps"],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"], "LD_PRELOAD": library},
    )
    name = re.escape(str(Path(library).resolve()))
    found = re.search(rf"^([0-9a-f]+)-\S+ r-xp .*{name}\n(?:\w+:.*\n)*?Rss:\s+(\d+) kB", result.stdout, re.MULTILINE)
    if not found:
        raise SystemExit(f"FAILED {library} is not mapped:\n{result.stdout}{result.stderr}")
    return int(found[1], 16), int(found[2]) << 10


failed = False
for library in sys.argv[1:]:
    address, size = resident(library)
    if address % WINDOW != 0:  # glibc before 2.35
        print(f"{library}: SKIPPED, as the loader does not place it at a multiple of 64 KiB")
        continue
    failed = failed or size > WINDOW
    print(f"{library}: {size >> 10} KiB resident, of at most {WINDOW >> 10}")
sys.exit(failed)
