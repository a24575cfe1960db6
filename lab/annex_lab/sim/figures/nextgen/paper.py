"""The numbers that NextGen-Malloc's tables and text give."""

# 1 and Figure 1: how much faster xalancbmk is than under glibc, at most; what of its time is in malloc and free; by
# how many times the times of xmalloc and cache-scratch vary, at least.
SPEEDUP, IN_ALLOCATOR, SPREAD = {"mimalloc2": 1.72}, 0.02, 10

# Table 1, xalancbmk: performance counters by allocator.
_EVENTS = ("cycles", "instructions", "llc_loads", "llc_stores", "dtlb_loads", "dtlb_stores")
XALAN = {
    "glibc": dict(zip(_EVENTS, (1.177e12, 1.282e12, 4.059e8, 3.554e8, 1.804e9, 3.669e7), strict=True)),
    "jemalloc": dict(zip(_EVENTS, (7.115e11, 1.320e12, 9.445e7, 1.630e8, 1.482e8, 2.937e7), strict=True)),
    "tcmalloc": dict(zip(_EVENTS, (7.091e11, 1.264e12, 1.016e8, 1.254e8, 1.641e8, 2.591e7), strict=True)),
    "mimalloc2": dict(zip(_EVENTS, (6.959e11, 1.262e12, 1.477e8, 1.321e8, 1.628e8, 2.787e7), strict=True)),
}
MISSES = _EVENTS[2:]
CALLS = 279_759_405  # of malloc and free, 4.1

# Table 2, xmalloc under TCMalloc: by threads.
THREADS = (1, 2, 4, 8)
XMALLOC = {
    "cycles": (4.333e10, 6.708e10, 1.148e11, 1.963e11),
    "instructions": (2.387e10, 2.979e10, 3.893e10, 4.874e10),
    "llc_loads": (1.223e5, 2.196e5, 2.477e6, 1.175e7),
    "llc_stores": (3.676e6, 4.231e6, 1.650e7, 5.402e7),
}

# Table 3, xalancbmk: mimalloc and NextGen-Malloc.
SECONDS = (532, 508)
MPKI = {"dtlb": (6.092, 3.452), "llc_loads": (8.911, 6.889), "llc_stores": (0.783, 0.496)}

# 4.1: what the synchronous hand-over takes, and a miss.
ATOMICS, ATOMIC_CYCLES = 4, 67
HAND_OVER = ATOMICS * ATOMIC_CYCLES
MISS_CYCLES = 214
MISSES_TO_SAVE = 1.25
