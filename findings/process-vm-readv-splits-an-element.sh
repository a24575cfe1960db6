#!/bin/bash
# process_vm_readv of one remote iovec element that runs into unreadable memory: part of the element is read, up to the
# page that can't be, and its length returned. The manual says that it never is.
#
# Guessed first, from process_vm_readv(2): "These system calls won't perform a partial transfer that splits a single
# iovec element", so a read of 3 pages of which the last is PROT_NONE fails whole, with EFAULT, and a reader has to cut
# its request into an element for each page. Seen on Linux 6.18: 2 pages are read, and 8192 returned. The kernel pins
# pages a batch at a time and copies those that it has (mm/process_vm_access.c).
#
# Needs python3 and nothing else. Fails where the behaviour is no longer this one.
set -euo pipefail
python3 - <<'PYTHON'
import ctypes
import mmap
import os

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


class IoVec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


PAGE = mmap.PAGESIZE
private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
start = libc.mmap(None, 3 * PAGE, mmap.PROT_READ | mmap.PROT_WRITE, private, -1, 0)
ctypes.memset(start, 7, 3 * PAGE)
assert libc.mprotect(ctypes.c_void_p(start + 2 * PAGE), PAGE, 0) == 0
buffer = ctypes.create_string_buffer(3 * PAGE)


def read(address):
    here = IoVec(ctypes.addressof(buffer), 3 * PAGE)
    there = IoVec(address, 3 * PAGE)
    result = libc.process_vm_readv(os.getpid(), ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    return result, os.strerror(ctypes.get_errno()) if result < 0 else ""


whole = read(start)
from_middle = read(start + 100)
unreadable = read(start + 2 * PAGE)
print(f"Linux {os.uname().release}: of 3 pages in one element, the last unreadable: {whole[0]} bytes read; "
      f"from byte 100 on: {from_middle[0]}; from the unreadable page on: {unreadable}")
assert whole[0] == 2 * PAGE and buffer.raw[: 2 * PAGE] == b"\7" * 2 * PAGE, "it has changed"
assert from_middle[0] == 2 * PAGE - 100 and unreadable[0] == -1, "it has changed"
PYTHON
