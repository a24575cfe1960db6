"""The same work by a pool of processes and a pool of threads."""

import concurrent.futures
import hashlib
import multiprocessing
import zlib


def task(n):
    words = [str(n * i % 1009) * (i % 40) for i in range(1500)]
    return zlib.compress(" ".join(sorted(words)).encode(), 1)


if __name__ == "__main__":
    fork = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=fork) as pool:
        print(hashlib.sha256(b"".join(pool.map(task, range(120), chunksize=5))).hexdigest())
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        print(hashlib.sha256(b"".join(pool.map(task, range(120)))).hexdigest())
