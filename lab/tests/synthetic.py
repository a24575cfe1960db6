"""A results document made up of random figures, of any size, with everything in it that the format knows."""

import math
import random

SUITES = ("single", "multi", "own")
METRICS = ("cpu_s", "score", "peak_rss_kib")


def document(allocators: list[str], programs: int, rounds: int, seed: int = 1, extras: bool = True) -> dict:
    """The last allocator fails on the first program, where there are several; `extras`: counts and latencies."""
    stream = random.Random(seed)
    names = [f"program-{number}" for number in range(programs)]
    pace = {name: stream.uniform(0.6, 1.5) for name in allocators}
    weight = {name: stream.uniform(0.7, 2.5) for name in allocators}
    failing = (names[0], allocators[-1]) if len(allocators) > 1 else None
    pairs = [(name, allocator) for name in names for allocator in allocators if (name, allocator) != failing]
    base = {name: (10 ** stream.uniform(-3, 1), stream.randrange(2_000, 300_000)) for name in names}
    results = []
    for name, allocator in pairs:
        own = stream.lognormvariate(0, 0.1)
        for round_ in range(rounds):
            seconds = base[name][0] * pace[allocator] * own * stream.lognormvariate(0, 0.03)
            peak = int(base[name][1] * weight[allocator] * own)
            results.append(_result(stream, name, allocator, round_, seconds, peak))
    groups = {"all": names} | ({"single, small": names[: programs // 2]} if programs > 3 else {})
    made = {
        "format": 2,
        "date": "2026-01-02",
        "machine": {
            "cpu": "Imagined",
            "cpus": 4,
            "memory_gib": 16,
            "kernel": "6.1.0",
            "libc": "glibc 2.36",
            "transparent_hugepage": "always [madvise] never",
            "overcommit": "0",
        },
        "options": {
            "command": "annex-lab bench --suite all --report report",
            "suite": "all",
            "rounds": rounds,
            "scale": 1.0,
            "threads": [2],
            "cpus": [0, 1],
        },
        "allocators": {
            name: {"version": "1.2", "flags": "-O3", "env": {"SETTING": "yes"}, "page_policy": "small pages only"}
            for name in allocators
        },
        "programs": {
            name: {
                "suite": SUITES[number % 2],
                "kind": "workload",
                "what": "nothing at all",
                "command": f"{name} --seed {number}",
                "glibc_peak_rss_kib": base[name][1],
            }
            for number, name in enumerate(names)
        },
        "results": results,
        "geomeans": geomeans(results, groups, allocators),
        "groups": groups,
        "failures": [{"workload": failing[0], "allocator": failing[1], "why": "signal 11"}] if failing else [],
        "skipped": [{"workload": "left-out", "why": "no ruby here"}],
        "absent": [{"allocator": "scudo", "why": "no package has it"}],
        "interrupted": True,
    }
    if extras:
        made["counts"] = [_counts(stream, *pair) for pair in pairs]
        made["latencies"] = [
            _latency(stream, *pair, call, pace[pair[1]]) for pair in pairs for call in ("malloc", "free")
        ]
    return made


def _result(stream: random.Random, name: str, allocator: str, round_: int, seconds: float, peak: int) -> dict:
    return {
        "workload": name,
        "allocator": allocator,
        "threads": 2,
        "round": round_,
        "wall_s": seconds,
        "user_s": seconds * 0.8,
        "sys_s": seconds * 0.1,
        "peak_rss_kib": peak,
        "mean_rss_kib": peak * 3 // 4,
        "minor_faults": peak // 4,
        "voluntary_switches": 3,
        "involuntary_switches": 4,
        "score": seconds,
        "foreign_cpu_s": 0.01,
        "disturbed": stream.random() < 0.03,
        "tries": 1,
    }


def geomeans(results: list[dict], groups: dict[str, list[str]], allocators: list[str]) -> list[dict]:
    """Of the first round, with a made-up interval: the page only shows them."""
    first = {(one["workload"], one["allocator"]): one for one in results if one["round"] == 0}
    rounds = 1 + max(one["round"] for one in results)
    found = []
    for group, names in groups.items():
        for allocator in allocators:
            for against in allocators:
                pairs = [(first.get((n, allocator)), first.get((n, against))) for n in names]
                if allocator == against:
                    continue
                for metric in METRICS:
                    both = [[_value(one, metric) for one in pair] for pair in pairs if all(pair)]
                    logs = [math.log(a / b) for a, b in both if a > 0 and b > 0]
                    if not logs:
                        continue
                    ratio = math.exp(sum(logs) / len(logs))
                    low, high = (ratio * 0.97, ratio * 1.04) if rounds >= 3 else (None, None)
                    found.append(
                        {
                            "group": group,
                            "allocator": allocator,
                            "against": against,
                            "metric": metric,
                            "ratio": ratio,
                            "low": low,
                            "high": high,
                            "programs": len(logs),
                        }
                    )
    return found


def _value(result: dict, metric: str) -> float:
    return result["user_s"] + result["sys_s"] if metric == "cpu_s" else result[metric]


def _counts(stream: random.Random, name: str, allocator: str) -> dict:
    instructions = stream.randrange(10**8, 10**9)
    misses = {f"{level}_misses": stream.randrange(0, 10**6) for level in ("l1i", "l1d", "ll")}
    return {"workload": name, "allocator": allocator, "instructions": instructions, **misses}


def _latency(stream: random.Random, name: str, allocator: str, call: str, pace: float) -> dict:
    times = sorted(stream.lognormvariate(math.log(20 * pace), 0.8) * (50 if n % 300 == 0 else 1) for n in range(2000))
    bounds = [round(8 * 1.15**step, 1) for step in range(72)]
    histogram, at = [], 0
    for bound in bounds:
        calls = 0
        while at < len(times) and times[at] <= bound:
            at, calls = at + 1, calls + 1
        histogram.append([bound, calls])
    histogram[-1][1] += len(times) - at
    p50, p99, p999 = (times[int(share * len(times))] for share in (0.5, 0.99, 0.999))
    return {
        "workload": name,
        "allocator": allocator,
        "call": call,
        "calls": len(times),
        "p50_ns": p50,
        "p99_ns": p99,
        "p999_ns": p999,
        "max_ns": times[-1],
        "histogram": histogram,
    }
