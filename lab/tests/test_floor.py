"""The floor serves programs correctly, and what it takes to get ready is no part of what they take."""

import subprocess
from pathlib import Path

import pytest

from annex_lab import allocators, native, sample

PROBE = r"""
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 4096 };
static unsigned char* block[SLOTS];
static size_t size[SLOTS];

#define DEMAND(what) do { if (!(what)) abort(); } while (0)

static void fill(unsigned i, unsigned char* where, size_t bytes) {
  DEMAND(where != NULL && (uintptr_t)where % 16 == 0 && malloc_usable_size(where) >= bytes);
  block[i] = where;
  size[i] = bytes;
  memset(where, (int)i, bytes);
}

static void drop(unsigned i) {
  for (size_t at = 0; at < size[i]; ++at) DEMAND(block[i][at] == (unsigned char)i);
  free(block[i]);
  block[i] = NULL;
}

static void* drop_all(void* unused) {
  for (unsigned i = 0; i < SLOTS; ++i) drop(i);
  return unused;
}

int main(void) {
  unsigned seed = 1;
  for (unsigned step = 0; step < 200000; ++step) {
    seed = seed * 1103515245 + 12345;
    const unsigned i = (seed >> 8) % SLOTS;
    const size_t bytes = (seed >> 20) % 300 * (step % 50 == 0 ? 500 : 1);
    if (block[i] == NULL) {
      fill(i, malloc(bytes), bytes);
    } else if (step % 3 == 0) {
      const size_t kept = bytes < size[i] ? bytes : size[i];
      unsigned char* moved = realloc(block[i], bytes + 1);
      for (size_t at = 0; at < kept; ++at) DEMAND(moved[at] == (unsigned char)i);
      fill(i, moved, bytes + 1);
    } else {
      drop(i);
      unsigned char* zeroed = calloc(1, bytes);
      for (size_t at = 0; at < bytes; ++at) DEMAND(zeroed[at] == 0);
      fill(i, zeroed, bytes);
    }
  }
  for (unsigned i = 0; i < SLOTS; ++i) {
    if (block[i] == NULL) fill(i, malloc(i), i);
  }
  pthread_t other;
  pthread_create(&other, NULL, drop_all, NULL);
  pthread_join(other, NULL);
  for (size_t alignment = 16; alignment <= 1 << 20; alignment *= 2) {
    for (size_t bytes = 1; bytes < 300000; bytes *= 3) {
      unsigned char* aligned = aligned_alloc(alignment, bytes);
      DEMAND((uintptr_t)aligned % alignment == 0 && malloc_usable_size(aligned) >= bytes);
      memset(aligned, 1, bytes);
      if (bytes % 2 == 1) free(aligned);
    }
  }
  // A large block that grows with nothing large behind it stays where it is.
  unsigned char* large = malloc(1000000);
  return realloc(large, 30000000) == large ? 0 : 1;
}
"""


@pytest.fixture(scope="module")
def probe(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("probe")
    (folder / "probe.c").write_text(PROBE)
    subprocess.run(["cc", "-O1", "-fno-builtin", "-pthread", folder / "probe.c", "-o", folder / "probe"], check=True)
    return folder / "probe"


def settings(peak_mib: int) -> dict[str, str]:
    return allocators.find("floor").settings_for(peak_mib << 10)


@pytest.mark.parametrize("peak_mib", [256, 0])  # 0: most of its memory is not ready
def test_blocks_keep_what_is_in_them(probe, program, context, peak_mib):
    sample.run(program(str(probe)), context, str(native.floor()), settings(peak_mib))


def test_what_it_takes_to_get_ready_does_not_count(program, context):
    taken = sample.run(program("/bin/sleep", "0.05"), context, str(native.floor()), settings(1024))
    ready = float((context.scratch / "ready").read_text().split()[0])
    assert ready > 0.05  # 3 GiB
    assert 0.05 <= taken.wall_s < 0.05 + ready / 2 + 0.05 and taken.cpu_s < ready / 2 + 0.05


def test_it_is_no_part_of_any_group():
    assert allocators.FLOOR not in {name for group in allocators.GROUPS.values() for name in group}
