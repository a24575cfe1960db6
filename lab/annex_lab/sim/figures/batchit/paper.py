"""The numbers that BatchIt's text and its published results give: time with batches over time without."""

# 4.1, snmalloc in its default configuration. The text calls xmalloc-test's a speed-up, and 4.2 sets a reduction of time
# beside it: it is read as one.
SNMALLOC = {
    "xmalloc-testN": 1 - 0.147,
    "sh8benchN": 1 + 0.083,
    "glibc-simple": 1 + 0.051,
    "glibc-thread": 1 + 0.031,
    "alloc-testN": 1 + 0.016,
    "alloc-test1": 1 + 0.015,
}

# 4.2, mimalloc in its default configuration.
MIMALLOC = {
    "xmalloc-testN": 1 - 0.099,
    "cache-scratch1": 1 - 0.037,
    "glibc-simple": 1 - 0.034,
    "sh8benchN": 1 - 0.071,
    "glibc-thread": 1 + 0.073,
}

# Figure 4, snmalloc, by producers and as many consumers, on 72 cores: not read off the picture, but from the results
# that go with it, as our notes have them (4.3: "over 20 %" with few threads, "as little as 3 %" with many).
MESSAGES = {
    "msgpass-1": 1 - 0.15,
    "msgpass-2": 1 - 0.28,
    "msgpass-3": 1 - 0.25,
    "msgpass-4": 1 - 0.22,
    "msgpass-8": 1 - 0.13,
    "msgpass-16": 1 - 0.06,
}

MANY_MESSAGES = {"msgpass-20": 1 - 0.08, "msgpass-24": 1 - 0.05, "msgpass-32": 1 - 0.04}

# 4.1 and 4.2, secure configurations.
SNMALLOC_SECURE = {"xmalloc-testN": 1 - 0.147}
MIMALLOC_SECURE = {"xmalloc-testN": 1 - 0.276, "mstressN": 1 + 0.060}

# 4.3: "essentially no change to the memory requirements" of message passing.
MEMORY = dict.fromkeys(MESSAGES, 1.0)
