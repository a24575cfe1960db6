"""Programs that use several threads on one job: xz -T2 both ways, sort --parallel, and a python process pool."""

import hashlib

from harness import INPUTS, main


def lines(count):
    random = 99
    for n in range(count):
        random = (random * 1103515245 + 12345) & 0x7FFFFFFF
        yield f"{random % 100003} word{random // 7 % 5003} {n} {'abcdefghij' * (random % 5)}\n"


def work(on):
    data = "".join(lines(150000)).encode()
    (on.dir / "data.txt").write_bytes(data)
    # Into files: xz 5.8 that writes to its standard output shuts itself into a sandbox, which no statistics leave.
    on.run(["xz", "-2", "-T2", "--block-size=1MiB", "--keep", "data.txt"])
    packed = (on.dir / "data.txt.xz").read_bytes()
    (on.dir / "data.txt").unlink()
    on.run(["xz", "--decompress", "-T2", "data.txt.xz"])
    unpacked = (on.dir / "data.txt").read_bytes()
    return {
        "packed": packed,
        "unpacked": hashlib.sha256(unpacked).hexdigest(),
        "came back": unpacked == data,
        "sorted": on.run(["sort", "--parallel=2", "-S", "4M", "-k2,2", "-k1,1n", "data.txt"]).out,
        "sorted in memory": on.run(["sort", "--parallel=4", "-S", "200M", "-u", "-r", "data.txt"]).out,
        "pools": on.run(["python3", INPUTS / "pools.py"]).out,
    }


main(work, ["xz", "sort", "python3"], processes=4)
