#!/usr/bin/env python3
"""Checks the figures that documents and comments repeat against where they are held (tools/truth.py).

    tools/figures.py              one line for each that is wrong; exit status 1 where there is any
    tools/figures.py --write      puts the right ones in their places

A figure is known by the words around it: FIGURES has them, with {} for the figure. Words that are gone, or there twice,
are an error, so whoever rewrites a sentence takes its figure along.
"""

import re
import sys
from pathlib import Path

from truth import PARTS, WORDS, Truth, Unknown, kib, size

GRANULE, SIZES, HEAP_SLAB = "src/pages/granule.h", "src/core/size_class.h", "src/core/slab.h"
COMMITMENT, AHEAD = "src/pages/commitment.cpp", "src/support/fault_ahead.cpp"
POLICY = "src/policy/flavours.h"
BATCHES, CHANNEL, INBOX = "src/remote/open_batches.h", "src/remote/channel.h", "src/remote/inbox.h"
READY_BATCH, MAGAZINE, STASH = "src/support/batch.h", "src/support/magazine.h", "src/support/stash.h"
PLACEMENT, THREAD, CORE = "src/support/placement.cpp", "src/support/support_thread.cpp", "src/support/support_core.cpp"
TABLES, OFFLOAD, OPTIONS, SOLO = (
    "src/support/side_tables.h",
    "src/front/offload.cpp",
    "src/os/options.h",
    "src/front/solo.cpp",
)


def granule(t):
    return size(t.constant(GRANULE, "kGranule"))


def huge_page(t):
    return size(t.constant(GRANULE, "kHugePage"))


def metadata(t):
    return t.found(GRANULE, r"sizeof\(Granule\) == (\d+)")


def reserve(t):
    return size(1 << t.found(OPTIONS, r"reserve_bytes = size_t\{1\} << (\d+);"))


def known_glibc(t):
    return [t.found(SOLO, r"minor >= (\d+) &&"), t.found(SOLO, r"&& minor <= (\d+);")]


def path_costs(t, flavour, path):
    return [t.golden(flavour, path, count) for count in ("instructions", "loads", "stores")]


def long_slabs(t):
    """The smallest and the largest blocks whose slabs take more than a granule, in KiB."""
    blocks = [row[1] for row in t.classes() if row[4] * 1024 > t.constant(GRANULE, "kGranule")]
    return [kib(min(blocks)), kib(max(blocks))]


def slab_kib(t):
    return [row[4] for row in t.classes()]


def worst_waste(t):
    return max(row[3] for row in t.classes() if row[2] > 128)


def start_demand(t):
    return t.constant(PLACEMENT, "kStartDemand")


def fair_share(t):
    return PARTS[t.found(HEAP_SLAB, r"fair_share\(.*capacity / (\d+)")]


def slack_share(t):
    return t.found(COMMITMENT, r"std::max\(kLeastSlack, touched\(books\) / (\d+)\)")


def ahead_from(t):
    """The live bytes from which a share of them is enough of a huge page."""
    enough, of = (t.found(AHEAD, rf"share >= kHugePage \* {part};") for part in (r"(\d+) / \d+", r"\d+ / (\d+)"))
    return t.constant(AHEAD, "kHugePage") * enough // of * t.constant(AHEAD, "kShare")


def least_cluster(t):
    return WORDS[t.constant(PLACEMENT, "kLeastCluster")]


def nanoseconds(t, name, unit):
    return t.constant(THREAD, name) // t.constant(THREAD, unit)


def shortest_nap_ms(t):
    return t.constant("src/support/support_thread.h", "kShortestNapMs")


# (document, words, the figures of a Truth)
FIGURES = [
    ("README.md", "keep at most {} bytes of thread-local storage",
     lambda t: max(t.thread_local(flavour) for flavour in ("shared", "solo", "offload"))),
    ("README.md", "with a glibc older than 2.{} or newer than 2.{}, solo is", known_glibc),
    ("docs/architecture.md", "room to grow in: up to {} of addresses", reserve),
    ("docs/architecture.md", "into *granules* of {}. Consecutive", granule),
    ("docs/architecture.md", "blocks of one size class, {} to {} KiB", lambda t: [min(slab_kib(t)), max(slab_kib(t))]),
    ("docs/architecture.md", "The metadata, {} bytes for each granule", metadata),
    ("docs/architecture.md", "(p - start) / {} * {}`", lambda t: [granule(t), metadata(t)]),
    ("docs/architecture.md", "at most {}, so its class is one load from a table of {} bytes: class {}, blocks of {}",
     lambda t: [(most := t.constant(SIZES, "kTableMax")), most // t.constant(SIZES, "kMinAlignment") + 1,
                *t.class_of(100)[:2]]),
    ("docs/architecture.md", "**That is all**: {} instructions, {} loads, {} stores",
     lambda t: path_costs(t, "shared", "malloc")),
    ("docs/architecture.md", "That takes {} instructions, {} loads, {} stores",
     lambda t: path_costs(t, "shared", "free")),
    ("docs/architecture.md", "a fair share (an {}) is free again", fair_share),
    ("docs/architecture.md", "Requests above {} skip", lambda t: size(t.constant(SIZES, "kMaxSmall"))),
    (
        "docs/architecture.md",
        "There are {} of them",
        lambda t: t.constant(POLICY, "kSets") * t.constant(POLICY, "kWays"),
    ),
    ("docs/architecture.md", "when it holds {}, or when B ends", lambda t: size(t.constant(BATCHES, "kBatchBytes"))),
    ("docs/architecture.md", "When B holds {} of such messages", lambda t: size(t.constant(CHANNEL, "kBudget"))),
    ("docs/architecture.md", "From {} messages on", lambda t: t.constant(INBOX, "kSortAt")),
    ("docs/architecture.md", "When {} slabs have become complete", lambda t: t.constant(INBOX, "kReapAt")),
    ("docs/architecture.md", "Thread-local storage is {} bytes", lambda t: t.thread_local("shared")),
    ("docs/offload.md", "class map: a word for each {} |", granule),
    ("docs/offload.md", "the few classes ({} to {} KiB) whose slabs take several", long_slabs),
    ("docs/offload.md", "has a block ready. {} instructions, {} atomic",
     lambda t: [t.golden("offload", "malloc", "instructions"), t.golden("offload", "malloc", "atomics") or "no"]),
    ("docs/offload.md", "a word of a slab's bitmap, so up to {} blocks", lambda t: t.constant(READY_BATCH, "kWord")),
    ("docs/offload.md", "It is spread out at most {} at a time", lambda t: t.constant(READY_BATCH, "kLargestPart")),
    ("docs/offload.md", "from one word to {}, or 1/{} of what the thread has",
     lambda t: [size(t.found(STASH, r"max\(static_cast<uint32_t>\((\d+) / block_size")),
                t.found(CORE, r"heap\.bytes\(c\) / (\d+);")]),
    ("docs/offload.md", "does without it for {} hand-overs", lambda t: t.constant(OFFLOAD, "kBypass")),
    ("docs/offload.md", "up to {} in each stack and 1/{} of the heap",
     lambda t: [size(t.found(MAGAZINE, r"widest_limit\(.*bounded\(c, (\d+),")),
                t.found(OFFLOAD, r"/ \((\d+) \* support_core\.open_clients")]),
    ("docs/offload.md", "has shown that it allocates ({} hand-overs", start_demand),
    ("docs/offload.md", "after {} hand-overs that the program had to do", lambda t: t.constant(THREAD, "kWakeDemand")),
    ("docs/offload.md", "after {} us without any: dozing", lambda t: nanoseconds(t, "kSpinNs", "kUs")),
    ("docs/offload.md", "at the latest after {} us", lambda t: nanoseconds(t, "kDozeNs", "kUs")),
    ("docs/offload.md", "After {} ms without any, or at once", lambda t: nanoseconds(t, "kIdleNs", "kMs")),
    ("docs/offload.md", "after {} ms, doubling up to a second", shortest_nap_ms),
    ("docs/offload.md", "if it has at least {} CPUs", least_cluster),
    ("docs/offload.md", "1/{} of what is live, from {} on a huge page",
     lambda t: [t.constant(AHEAD, "kShare"), size(ahead_from(t))]),
    ("docs/offload.md", "a support thread that dozes for {} ms", lambda t: nanoseconds(t, "kIdleNs", "kMs")),
    ("docs/offload.md", "the first {} hand-overs, which the program does", start_demand),
    ("docs/commitment.md", "large spans are aligned to {} and realloc moves them from {} on",
     lambda t: [huge_page(t), size(t.constant("src/core/span.cpp", "kMoveFrom"))]),
    ("docs/commitment.md", "each thread's heap has a slab of {} for", granule),
    ("docs/commitment.md", "max({}, touched / {}, needed - live - n)",
     lambda t: [size(t.constant(COMMITMENT, "kLeastSlack")), slack_share(t)]),
    ("docs/commitment.md", "less than `ANNEX_PURGE_DELAY` ago ({} s) is kept",
     lambda t: t.found(OPTIONS, r"purge_delay_ms = (\d+);") // 1000),
    ("docs/statistics.md", "books ({} bytes for each {})", lambda t: [metadata(t), granule(t)]),
    ("docs/statistics.md", "of used, in blocks above {}", lambda t: size(t.constant(SIZES, "kMaxSmall"))),
    ("docs/simulator.md", "until it is a `quantum` ahead ({} cycles)",
     lambda t: t.found("docs/machine-parameters.md", r"^\| `quantum` \| (\d+) \|")),
    ("docs/simulator.md", "so Annex runs with `ANNEX_RESERVE={}G`",
     lambda t: t.found("lab/annex_lab/sim/run.py", r'^RESERVE = "(\d+)G"')),
    ("src/pages/arena.h", "room to grow in (os/pages.h), {} or what", reserve),
    ("src/pages/commitment.h", "clamp(committed / 4, {}, {}), at least",
     lambda t: [size(t.constant(COMMITMENT, "kSmallestStep")), size(t.constant(COMMITMENT, "kLargestStep"))]),
    ("src/pages/commitment.h", "touched >= {}, and 3/4 are", lambda t: size(t.constant(COMMITMENT, "kProofOfGrowth"))),
    ("src/pages/commitment.h", "of the last {} of it; less than {} says",
     lambda t: [size(t.constant(COMMITMENT, "kLongSample")), size(t.constant(COMMITMENT, "kSample"))]),
    ("src/pages/commitment.h", "no more from {} touched on, with several 2/3 from {} on",
     lambda t: [size(t.constant(COMMITMENT, "kLargeAlone")), size(t.constant(COMMITMENT, "kLarge"))]),
    ("src/pages/commitment.h", "dirty <= max({}, touched / {}, needed",
     lambda t: [size(t.constant(COMMITMENT, "kLeastSlack")), slack_share(t)]),
    ("src/support/fault_ahead.h", "clamp(live / {}, {}, {})",
     lambda t: [t.constant(AHEAD, "kShare"), granule(t), size(t.constant(AHEAD, "kLargestSmallPiece"))]),
    ("src/support/fault_ahead.h", "= {}, where slabs want huge pages and live >= {}",
     lambda t: [huge_page(t), size(ahead_from(t))]),
    ("src/support/fault_ahead.h", "clamp(live / {} - {}, {}, {})",
     lambda t: [t.constant(AHEAD, "kShare"), huge_page(t), size(t.constant(AHEAD, "kLeastBeforeHuge")),
                size(t.constant(AHEAD, "kMostBeforeHuge"))]),
    (GRANULE, "granule   {} of an arena", granule),
    (GRANULE, "an array of records of {} bytes, one for", metadata),
    ("src/pages/run_bins.h", "up to {} have a bin each", lambda t: t.constant("src/pages/run_bins.h", "kExactBins")),
    (SIZES, "at worst {} % of the block", worst_waste),
    ("src/front/offload.h", "Thread-local storage: {} bytes", lambda t: t.thread_local("offload")),
    ("src/front/shared.h", "Thread-local storage: {} bytes", lambda t: t.thread_local("shared")),
    ("src/front/solo.h", "it does in glibc 2.{} to 2.{})", known_glibc),
    ("src/os/options.def", "one for each cluster of {} CPUs or more", least_cluster),
    ("src/support/side_tables.h", "bitmaps {} bytes a granule", lambda t: t.constant(TABLES, "kBitmapBytes")),
    ("src/support/support_thread.h", "For {} ms, twice as long each time", shortest_nap_ms),
]  # fmt: skip

# What must not stand in a document or in a header's comment without being in FIGURES.
WATCHED = re.compile(r"(\d+) (?:instructions|loads?|stores?|bytes\s(?://\s)?of\sthread-local)\b")
WATCHED_FILES = ("README.md", "docs/architecture.md", "docs/offload.md", "docs/commitment.md", "src/front/*.h")
MEASURED = {("docs/offload.md", "22 instructions")}  # by a program that the document names

GAP = r"\s+(?:(?://|#)\s+)?"  # between words: lines of text, and of comments, end anywhere
FIGURE = rf"(\d[\d.,]*(?:{GAP}[KMGT]iB\b)?|[a-z]+)"


def pattern_of(words):
    parts = [GAP.join(re.escape(word) for word in re.split(r"\s+", part)) for part in words.split("{}")]
    return re.compile(FIGURE.join(parts))


def check(root, figures, watched):
    """What is wrong, and the texts of documents as they should be."""
    truth, wrong, texts, covered = Truth(root), [], {}, {}
    for document, words, value in figures:
        text = texts.setdefault(document, (root / document).read_text())
        matches = list(pattern_of(words).finditer(text))
        if len(matches) != 1:
            wrong.append(f'{document}: the words of a figure are there {len(matches)} times: "{words}"')
            continue
        match = matches[0]
        try:
            values = value(truth)
        except Unknown as why:
            wrong.append(f'{document}: no source for "{words}": {why}')
            continue
        values = [str(one) for one in (values if isinstance(values, list) else [values])]
        if len(values) != match.re.groups:
            raise ValueError(f"{len(values)} figures for: {words}")
        for group in range(len(values), 0, -1):  # backwards: places before stay where they are
            start, end = match.span(group)
            told = re.sub(GAP, " ", match[group])
            if told != values[group - 1]:
                line = text.count("\n", 0, start) + 1
                wrong.append(f'{document}:{line}: {told} where it is {values[group - 1]}: "{words}"')
                text = text[:start] + values[group - 1] + text[end:]
        texts[document] = text
        covered.setdefault(document, []).append(pattern_of(words))
    return wrong + list(unwatched(root, texts, covered, watched)), texts


def unwatched(root, texts, covered, watched):
    """Figures of the kinds that go out of date, which nothing checks."""
    for pattern in watched:
        for path in sorted(root.glob(pattern)):
            document = path.relative_to(root).as_posix()
            text = texts.get(document) or path.read_text()
            known = [match.span() for one in covered.get(document, ()) for match in one.finditer(text)]
            for match in WATCHED.finditer(text):
                inside = any(start <= match.start() and match.end(1) <= end for start, end in known)
                if not inside and (document, match[0]) not in MEASURED:
                    line = text.count("\n", 0, match.start()) + 1
                    yield f"{document}:{line}: nothing checks {match[0]}: add it to FIGURES in tools/figures.py"


def main():
    root = Path(__file__).resolve().parent.parent
    if sys.argv[1:] not in ([], ["--write"]):
        sys.exit(__doc__)
    wrong, texts = check(root, FIGURES, WATCHED_FILES)
    if sys.argv[1:]:
        for document, text in texts.items():
            if text != (root / document).read_text():
                (root / document).write_text(text)
        wrong, _ = check(root, FIGURES, WATCHED_FILES)
    for line in wrong:
        print(line)
    if wrong and not sys.argv[1:]:
        print("Figures that are out of date: tools/figures.py --write")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
