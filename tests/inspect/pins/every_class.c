/* (b) One call site with a few blocks of each of many sizes: load_plugin keeps sixteen of each, between blocks of the
 * same size that are freed again. read_table has more in use, of one size. */
#include "resident.h"

enum { kSmallest = 16, kSizes = 256, kKept = 16, kApart = 8192, kTables = 40000 };

static void* plugins[kSizes][kKept];
static void* tables[kTables];

static void* load_plugin(size_t bytes) { return filled(malloc(bytes), bytes); }
static void* take_scratch(size_t bytes) { return filled(malloc(bytes), bytes); }
static void* read_table(void) { return filled(malloc(100), 100); }

/* A block of the culprit's after each 8 KiB of others. */
static void fill(size_t bytes, void** kept, int with) {
  const size_t between = kApart / bytes + 1;
  void** scratch = malloc(between * kKept * sizeof *scratch);
  if (scratch == NULL) abort();
  for (size_t i = 0; i < between * kKept; ++i) {
    scratch[i] = take_scratch(bytes);
    if (with && i % between == 0) kept[i / between] = load_plugin(bytes);
  }
  for (size_t i = 0; i < between * kKept; ++i) free(scratch[i]);
  free(scratch);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  for (int i = 0; i < kTables; ++i) tables[i] = read_table();
  for (int i = 0; i < kSizes; ++i) fill(kSmallest * (i + 1), plugins[i], argc == 2);
  say_resident("before");
  write_profile(argv[1]);
  for (int i = 0; i < kSizes; ++i) {
    for (int j = 0; j < kKept; ++j) free(plugins[i][j]);
  }
  say_resident("after");
  return tables[kTables - 1] == NULL;
}
