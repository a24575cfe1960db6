"""The numbers that Mallacc's text gives, with the section that they are from. None is read off a picture."""

MALLOC = 1 - 0.30  # 6.1: malloc calls, nearly 30 % less, on average over its workloads
MALLOC_OF = {"xapian": 1 - 0.40, "xalan": 1 - 0.40}  # 6.1: over 40 % less, of each
ALLOCATOR = 1 - 0.18  # 6.1: the allocator, 18 % less
ALLOCATOR_LIMIT = 1 - 0.28  # 6.1: as its limit study projects
FROM = "6.1"

# Table 1: of its simulator's cycles against a Haswell's.
CYCLE_ERROR = {
    **{"gauss": 0.0532, "gauss-free": 0.0367},
    **{"tp-warm": 0.123, "tp-small-warm": 0.0592, "sized-deletes-warm": 0.0421},
    "mean": 0.0628,
}

# Figure 1: missing in a thread cache, over hitting there.
MISS_OVER_HIT, MISS_FROM = 1000, "3.1, at least"

# Figure 2: of the time in malloc, more than that is in calls below 100 cycles: of SPEC's programs, and more of xapian.
SHORT, SHORT_SHARE, SHORT_FROM = 100, 0.60, "3.2, more than"
SHORT_OF = ("perl-hashes", "xalan", "xapian")  # what we have for its programs

# Figure 4: of the fast path's cycles, all three steps together, of its microbenchmarks.
FAST_PATH_STEPS, STEPS_FROM = 0.50, "3.3"

# Figure 6: workload -> size classes -> the part of mallocs that these serve.
COVERED = {"xalan": {2: 0.50, 30: 0.90}, "perl-hashes": {4: 0.90}, "xapian": {4: 0.90}}
COVERED_FROM = "3.3, 6.1, at least"

# Figure 15: a call's median with the malloc cache, in cycles.
MEDIAN, MEDIAN_FROM = {"xapian": 13}, "6.1"

# Table 2: of the whole program's time; its xapian.abstracts, and the mean of 6.3.
PROGRAM = {"perl-hashes": 0.0078, "xalan": 0.0027, "xapian": 0.0055, "mean": 0.0043}
# Of these the standard deviation, and the p-value of a one-sided t-test of whether the program is slower; of the first
# it says "< 0.001".
PROGRAM_DEVIATION = {"perl-hashes": 0.0005, "xalan": 0.0006, "xapian": 0.0005}
PROGRAM_P_VALUE = {"perl-hashes": 0.001, "xalan": 0.043, "xapian": 0.002}
PROGRAM_FROM = "Table 2, 6.3"

CLASSES = {"sized-deletes-warm": 8, "tp-warm": 25, "tp-small-warm": 4, "gauss": 13, "gauss-free": 13}  # 6.2

# Area at 28 nm, in um2, of 16 entries.
CAM, SRAM, INDEX, WHOLE, AREA_FROM = 873, 346, 265, 1500, "6.4"
CORE_MM2, OF_A_CORE = 26.5, 60  # a Haswell with L1 and L2; in millionths: 0.006 %
