"""Parsers, containers, threads that hand objects over, cycles, and forks of a process with threads."""

import collections
import concurrent.futures
import gc
import hashlib
import json
import os
import re
import threading
import zlib

random = 12345


def number():
    global random
    random = (random * 1103515245 + 12345) & 0x7FFFFFFF
    return random


records = [
    {
        "id": i,
        "name": f"record {number() % 1000}",
        "tags": [f"t{number() % 50}" for _ in range(number() % 8)],
        "value": number() / 7,
        "text": "abc def " * (number() % 40),
    }
    for i in range(6000)
]
text = json.dumps(records)
again = json.loads(text)
assert again == records
print("json", len(text), hashlib.sha256(text.encode()).hexdigest())

words = collections.Counter(re.findall(r"\w+", text))
print("words", len(words), words.most_common(5))
print("subst", hashlib.md5(re.sub(r"record (\d+)", lambda m: m.group(1) * 3, text).encode()).hexdigest())

by_tag = collections.defaultdict(list)
for record in records:
    for tag in record["tags"]:
        by_tag[tag].append(record)
print("tags", sorted((len(found), tag) for tag, found in by_tag.items())[-5:])


def task(n):  # compresses outside the interpreter's lock, so these do run at the same time
    data = bytes(range(256)) * (20 + n % 200)
    packed = zlib.compress(data)
    return zlib.crc32(packed), len(zlib.decompress(packed))


with concurrent.futures.ThreadPoolExecutor(8) as pool:
    print("threads", hashlib.md5(repr(list(pool.map(task, range(2000)))).encode()).hexdigest())

# Objects made by one thread and dropped by another, while threads come and go.
queue, total, lock = collections.deque(), [0], threading.Lock()


def make(n):
    for i in range(300):
        queue.append([bytes(n + i) for _ in range(10)])


def drop():
    while True:
        try:
            got = queue.popleft()
        except IndexError:
            return
        with lock:
            total[0] += sum(len(part) for part in got)


for _ in range(20):
    threads = [threading.Thread(target=make, args=(n,)) for n in range(4)] + [threading.Thread(target=drop)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
drop()
print("handed over", total[0])


class Node:
    pass


for _ in range(20):  # cycles for the collector
    nodes = [Node() for _ in range(2000)]
    for i, node in enumerate(nodes):
        node.next = nodes[(i * 7 + 1) % 2000]
        node.payload = "x" * (i % 300)
del nodes, node
print("collected", gc.collect() > 0)

# Forks of a process that has threads: each child allocates and leaves by os._exit.
stop = threading.Event()


def busy():
    while not stop.is_set():
        json.loads(text[:0] + json.dumps(records[:20]))


churn = [threading.Thread(target=busy) for _ in range(3)]
for thread in churn:
    thread.start()
codes = []
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        ok = json.loads(json.dumps(records[:200])) == records[:200] and len(zlib.compress(b"x" * 100000)) > 0
        os._exit(0 if ok else 1)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
stop.set()
for thread in churn:
    thread.join()
print("children", codes)
