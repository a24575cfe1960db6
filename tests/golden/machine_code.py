"""Reads x86-64 machine code through objdump, and says what each instruction does to memory and control flow."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

PREFIXES = {"addr32", "data16", "bnd", "notrack", "lock", "rep", "repz", "repnz", "cs", "ds", "es", "ss"}
NO_ACCESS = re.compile(r"lea[lqw]?$|nop|endbr64$|prefetch")
# Destination only read; destination only written; all others with a destination in memory read and write it.
ONLY_READ = re.compile(r"(cmp|test|bt|ucomis|comis|mul|imul|div|idiv)[bwlqsd]?$|j|call|push")
ONLY_WRITTEN = re.compile(r"mov|vmov|set|cvt|pop|movnti|st")
UNCONDITIONAL = {"jmp", "jmpq"}


@dataclass(frozen=True)
class Instruction:
    address: int
    next: int
    prefixes: tuple
    mnemonic: str
    operands: tuple
    target: int | None  # of a direct jump or call

    @property
    def text(self):
        operands = ",".join(self.operands) if self.target is None or not self.changes_flow else "..."
        operands = re.sub(r"-?0x[0-9a-f]+\(%rip\)", "...(%rip)", operands)
        return " ".join([*self.prefixes, self.mnemonic, operands]).strip()

    def __str__(self):
        return f"{self.address:x}: {self.text}"

    @property
    def changes_flow(self):
        return self.is_jump or self.is_conditional or self.is_call

    @property
    def is_return(self):
        return self.mnemonic in ("ret", "retq")

    @property
    def is_call(self):
        return self.mnemonic.startswith("call")

    @property
    def is_jump(self):
        return self.mnemonic in UNCONDITIONAL

    @property
    def is_conditional(self):
        return self.mnemonic.startswith("j") and not self.is_jump

    @property
    def is_atomic(self):
        memory = any(is_memory(operand) for operand in self.operands)
        return "lock" in self.prefixes or (self.mnemonic.startswith("xchg") and memory)

    @property
    def memory(self):
        """(loads, stores), the stack included for push and pop, not for call and ret."""
        if self.mnemonic.startswith("push"):
            return (1 if is_memory(self.operands[0]) else 0), 1
        if self.mnemonic.startswith("pop"):
            return 1, (1 if is_memory(self.operands[0]) else 0)
        if NO_ACCESS.match(self.mnemonic) or not self.operands:
            return 0, 0
        loads = sum(1 for operand in self.operands[:-1] if is_memory(operand))
        if not is_memory(self.operands[-1]):
            return loads, 0
        if ONLY_READ.match(self.mnemonic):
            return loads + 1, 0
        if ONLY_WRITTEN.match(self.mnemonic):
            return loads, 1
        return loads + 1, 1

    @property
    def note(self):
        loads, stores = self.memory
        parts = [word for word, times in (("load", loads), ("store", stores)) if times]
        if self.is_conditional:
            parts.append("conditional")
        return "  " + " and ".join(parts) if parts else ""


def is_memory(operand):
    return "(" in operand or operand.startswith("*(") or ":" in operand


def split_operands(text):
    """At the commas outside parentheses."""
    return tuple(part.strip() for part in re.split(r",(?![^(]*\))", text) if part.strip())


def parse(address, following, text):
    text = re.sub(r"\s*(#.*|<[^>]*>)\s*", " ", text).strip()
    words = text.split()
    prefixes = []
    while len(words) > 1 and words[0] in PREFIXES:
        prefixes.append(words.pop(0))
    mnemonic, rest = words[0], " ".join(words[1:])
    target = None
    if (mnemonic.startswith("j") or mnemonic.startswith("call")) and re.fullmatch(r"[0-9a-f]+", rest):
        target = int(rest, 16)
    return Instruction(address, following, tuple(prefixes), mnemonic, split_operands(rest), target)


@dataclass(frozen=True)
class Function:
    start: int
    end: int

    def __contains__(self, address):
        return self.start <= address < self.end


class Library:
    def __init__(self, path):
        self.path = Path(path)
        listing = run("objdump", "-d", "--no-show-raw-insn", "-M", "att", "-j", ".text", self.path)
        rows = re.findall(r"^\s*([0-9a-f]+):\t(.+)$", listing, re.MULTILINE)
        addresses = [int(address, 16) for address, _ in rows]
        self._instructions = {
            address: parse(address, following, text)
            for address, following, (_, text) in zip(addresses, [*addresses[1:], None], rows)
        }
        self._symbols = {}
        for line in run("nm", "-D", "-S", "--defined-only", self.path).splitlines():
            fields = line.split()
            if len(fields) == 4:
                start, size = int(fields[0], 16), int(fields[1], 16)
                self._symbols[fields[3].split("@")[0]] = Function(start, start + size)
        comment = run("readelf", "-p", ".comment", self.path)
        found = re.search(r"GCC:.*?\)\s+(\d+)\.|clang version (\d+)\.", comment)
        name = "unknown" if not found else f"GCC {found[1]}" if found[1] else f"clang {found[2]}"
        self.compiler = name
        segments = run("readelf", "-W", "-l", self.path)
        tls = re.search(r"^\s*TLS\s+(?:\S+\s+){4}(0x[0-9a-f]+)", segments, re.MULTILINE)  # its size in memory
        self.thread_local_bytes = int(tls[1], 16) if tls else 0

    def function(self, symbol):
        if symbol not in self._symbols:
            raise SystemExit(f"{self.path.name} exports no {symbol}")
        return self._symbols[symbol]

    def at(self, address):
        return self._instructions[address]


def count(path):
    memory = [instruction.memory for instruction in path]
    return {
        "instructions": len(path),
        "loads": sum(loads for loads, _ in memory),
        "stores": sum(stores for _, stores in memory),
        "conditional": sum(instruction.is_conditional for instruction in path),
        "jumps": sum(instruction.is_jump for instruction in path),
        "atomics": sum(instruction.is_atomic for instruction in path),
        "calls": sum(instruction.is_call for instruction in path),
    }


def run(*command):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout
