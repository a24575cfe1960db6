#!/bin/bash
# /proc/PID/pagemap after a look at a process's untouched memory by process_vm_readv: all of it is "present" from then on,
# though the process's resident set has not grown by a byte; its page tables have.
#
# Guessed first: a present page is a resident one, so what is present adds up to Rss; and a read from outside leaves no
# trace. Seen on Linux 6.18: 64 MiB that were never touched are read; Rss stays, each entry of the pagemap has its present
# bit set, and VmPTE has grown by 8 bytes a page. The read maps the zero page (as the process's own read would), which is
# present and counted nowhere. So who wants resident bytes from pagemap must not have read what was never written.
#
# Needs python3 and nothing else. Fails where the behaviour is no longer this one.
set -euo pipefail
python3 - <<'PYTHON'
import array
import ctypes
import mmap
import os
import re
import signal
import time
from pathlib import Path

BYTES = 64 << 20
libc = ctypes.CDLL(None, use_errno=True)


class IoVec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def status(child, key):
    return int(re.search(rf"^{key}:\s+(\d+)", Path(f"/proc/{child}/status").read_text(), re.MULTILINE)[1])


def rss(child):
    return int(re.search(r"^Rss:\s+(\d+)", Path(f"/proc/{child}/smaps_rollup").read_text(), re.MULTILINE)[1])


def present(child, address):
    with open(f"/proc/{child}/pagemap", "rb", 0) as pagemap:
        pagemap.seek(address // mmap.PAGESIZE * 8)
        entries = array.array("Q", pagemap.read(BYTES // mmap.PAGESIZE * 8))
    return sum(entry >> 63 for entry in entries) * mmap.PAGESIZE


memory = mmap.mmap(-1, BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(mmap.MADV_NOHUGEPAGE)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
child = os.fork()
if child == 0:
    while True:
        time.sleep(60)
try:
    buffer = ctypes.create_string_buffer(BYTES)
    before = rss(child), present(child, address), status(child, "VmPTE")
    here, there = IoVec(ctypes.addressof(buffer), BYTES), IoVec(address, BYTES)
    read = libc.process_vm_readv(child, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    after = rss(child), present(child, address), status(child, "VmPTE")
finally:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
print(f"Linux {os.uname().release}, {BYTES >> 20} MiB untouched, {read >> 20} MiB read from outside: "
      f"Rss {before[0]} -> {after[0]} KiB, present {before[1] >> 10} -> {after[1] >> 10} KiB, "
      f"page tables {before[2]} -> {after[2]} KiB")
assert before[1] == 0 and after[1] == read == BYTES, "it has changed"
assert abs(after[0] - before[0]) < 1024 and after[2] - before[2] >= BYTES // mmap.PAGESIZE * 8 // 1024, "it has changed"
PYTHON
