"""The numbers of Exgen-Malloc's abstract; no text of its figures is public."""

SPEED_OVER = "dlmalloc"
SPEED = {"mimalloc-bench": 1.93, "redis": 1.10, "spec": 1.17}
# Over mimalloc, of which the abstract names no version.
MEMORY_SAVED = {"mimalloc-bench": 0.252, "redis": 0.001, "spec": 0.062}
