"""The numbers that Mallacc's text gives, with the section that they are from. None is read off a picture."""

MALLOC = 1 - 0.30  # 6.1: malloc calls, nearly 30 % less, on average over its workloads
ALLOCATOR = 1 - 0.18  # 6.1: the allocator, 18 % less
ALLOCATOR_LIMIT = 1 - 0.28  # 6.1: as its limit study projects
FROM = "6.1"
CLASSES = {"sized-deletes-warm": 8, "tp-warm": 25, "tp-small-warm": 4, "gauss": 13, "gauss-free": 13}  # 6.2
