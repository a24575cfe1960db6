"""python3's own test suite, the parts that exercise memory most, with every object on malloc.

A module that fails on Annex is tried on the C library's allocator too: one that fails there as well (some do as
root or in a container) is told, and not counted.
"""

import re

from harness import Failure, main, tail

MODULES = """test_array test_bytes test_ctypes test_deque test_dict
test_exceptions test_functools test_gc test_generators test_gzip test_hashlib test_itertools
test_json test_list test_marshal test_memoryio test_memoryview test_mmap test_ordered_dict
test_pyexpat test_re test_set test_sort test_struct test_thread test_threadedtempfile
test_threading_local test_tracemalloc test_unicode test_xml_etree_c test_zlib""".split()


def failed(output):
    """The modules under "2 tests failed:" in the summary."""
    found = re.search(r"\d+ tests? failed:\n((?:    .*\n)+)", output)
    return found.group(1).split() if found else []


def work(on):
    if not on.library:
        return {}
    command = ["python3", "-m", "test", "--timeout", "100"]
    result = on.run([*command, *MODULES], env={"PYTHONMALLOC": "malloc"}, timeout=240, status=None)
    output = result.out.decode(errors="replace")
    if result.status == 0:
        print(output.splitlines()[-1])
        return {}
    suspects = failed(output)
    if not suspects:
        raise Failure(
            f"the suite ended with status {result.status}\n{tail(output + result.err.decode(errors='replace'), 100)}"
        )
    again = on.run([*command, *suspects], timeout=240, status=None, plain=True)
    also = failed(again.out.decode(errors="replace"))
    print(f"fail on the C library's allocator too: {' '.join(also)}")
    if set(suspects) - set(also):
        raise Failure(f"on Annex only: {' '.join(sorted(set(suspects) - set(also)))}\n{tail(output, 100)}")
    return {}


main(work, ["python3"])
