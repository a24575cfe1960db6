"""Programs that use several threads on one job: xz -T2 both ways, sort --parallel, and a python process pool."""

import hashlib

from harness import main

# Sends work to threads that hand large and small results back, through a pool of processes and a pool of threads.
POOLS = r"""
import concurrent.futures, hashlib, multiprocessing, zlib
def task(n):
    words = [("%d" % (n * i % 1009)) * (i % 40) for i in range(1500)]
    return zlib.compress(" ".join(sorted(words)).encode(), 1)
if __name__ == "__main__":
    fork = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=fork) as pool:
        print(hashlib.sha256(b"".join(pool.map(task, range(120), chunksize=5))).hexdigest())
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        print(hashlib.sha256(b"".join(pool.map(task, range(120)))).hexdigest())
"""


def lines(count):
    random = 99
    for n in range(count):
        random = (random * 1103515245 + 12345) & 0x7FFFFFFF
        yield f"{random % 100003} word{random // 7 % 5003} {n} {'abcdefghij' * (random % 5)}\n"


def work(on):
    data = "".join(lines(150000)).encode()
    (on.dir / "data.txt").write_bytes(data)
    (on.dir / "pools.py").write_text(POOLS)
    packed = on.run(["xz", "-2", "-T2", "--block-size=1MiB", "-c", "data.txt"]).out
    unpacked = on.run(["xz", "-dc", "-T2"], packed).out
    return {
        "packed": packed,
        "unpacked": hashlib.sha256(unpacked).hexdigest(),
        "came back": unpacked == data,
        "sorted": on.run(["sort", "--parallel=2", "-S", "4M", "-k2,2", "-k1,1n", "data.txt"]).out,
        "sorted in memory": on.run(["sort", "--parallel=4", "-S", "200M", "-u", "-r", "data.txt"]).out,
        "pools": on.run(["python3", "pools.py"]).out,
    }


main(work, ["xz", "sort", "python3"], processes=4)
