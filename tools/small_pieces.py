#!/usr/bin/env python3
"""What small pieces of code take on this machine and on the preset `host`: 16 of a kind in a row, in a loop.

    .venv/bin/python tools/small_pieces.py                          # cycles, a dependent addition being one here
    .venv/bin/python tools/small_pieces.py --set core.taken=2       # and of the preset changed

Makes docs/simulator-differences.md's table. The difference of two counts, the least CPU time of five; a quiet machine.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

IN_A_ROW = 16
KINDS = {  # what: the instructions of one; `before` and `after` 16 of them
    "a jump to the next 16 bytes": "jmp 1f\\n.balign 16\\n1:\\n",
    "a conditional branch there, taken": "test %%eax,%%eax\\njz 1f\\n.balign 16\\n1:\\n",
    "one that is not taken": "test %%eax,%%eax\\njnz 1f\\n1:\\n",
    "a call and its return": "call leaf\\n",
    "a call through a jump by a pointer": "call through\\n",
    "a call by a pointer": "call *pointer(%%rip)\\n",
    "two pushes and two pops": "push %%rbx\\npush %%rcx\\npop %%rcx\\npop %%rbx\\n",
    "a store and a load of it, by base and index": "mov %%rdx,(%0,%%rax,8)\\nmov (%0,%%rax,8),%%rdx\\n",
    "a block from a list and back": "mov (%0),%%rdx\\nmov (%%rdx),%%rcx\\nmov %%rcx,(%0)\\n"
    "mov (%0),%%rcx\\nmov %%rcx,(%%rdx)\\nmov %%rdx,(%0)\\n",
}
ADDITION = "add $1,%%edx\\n"
SOURCE = r"""
#include <stdlib.h>
__asm__(".globl leaf\n.balign 16\nleaf: ret\n.balign 16\nthrough: jmp *pointer(%rip)\n");
extern void leaf(void);
void (*volatile pointer)(void) = leaf;
int main(int given, char** words) {
  const long count = given > 1 ? atol(words[1]) : 1;
  static void* blocks[2] = {&blocks[1], 0};
  static void* volatile head[2] = {blocks, 0};
  for (long i = 0; i < count; ++i)
    __asm__ volatile("sub $128,%%rsp\nxor %%eax,%%eax\n" PIECES "add $128,%%rsp\n"
                     ::"r"(head) : "rax", "rbx", "rcx", "rdx", "memory", "cc");
}
"""


def compiled(piece: str, folder: Path, name: str) -> Path:
    program = folder / name
    define = f'-DPIECES="{piece * IN_A_ROW}"'
    command = ["cc", "-O1", "-no-pie", "-x", "c", define, "-o", str(program), "-"]
    subprocess.run(command, input=SOURCE, text=True, check=True)
    return program


def cpu_s(program: Path, count: int) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([program, str(count)], check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def here(program: Path, count: int = 10_000_000) -> float:
    times = [(cpu_s(program, count), cpu_s(program, 2 * count)) for _ in range(5)]
    return (min(many for _, many in times) - min(few for few, _ in times)) / count / IN_A_ROW


def simulated(program: Path, settings: list[str], count: int = 10_000) -> float:
    def cycles(times: int) -> int:
        out = program.with_suffix(".json")
        words = [word for setting in settings for word in ("--set", setting)]
        command = [sys.executable, "-m", "annex_lab.cli", "sim", "--part", "--machine", "host", "--json", str(out)]
        subprocess.run([*command, *words, "--", str(program), str(times)], check=True, capture_output=True)
        return json.loads(out.read_text())["busy_cycles"]

    return (cycles(2 * count) - cycles(count)) / count / IN_A_ROW


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the preset")
    settings = asked.parse_args().set
    with tempfile.TemporaryDirectory() as scratch:
        cycle = here(compiled(ADDITION, Path(scratch), "addition"))
        print(f"| | here, {1e-9 / cycle:.2f} GHz | preset `host`{', ' + ', '.join(settings) if settings else ''} |")
        print("|---|---|---|")
        for number, (what, piece) in enumerate(KINDS.items()):
            program = compiled(piece, Path(scratch), f"piece{number}")
            print(f"| {what} | {here(program) / cycle:.1f} | {simulated(program, settings):.1f} |", flush=True)


if __name__ == "__main__":
    main()
