/* (c) A cache that grew and shrank: cache_put takes 64 MiB, of which one entry in twenty-five stays, drawn by chance.
 * Between its entries lie those of add_user, of the same sizes, that stay. */
#include "resident.h"

enum { kEntries = 200000, kEach = 50, kSmallest = 64, kLargest = 640 };

static void* entries[kEntries];
static void* users[kEntries / kEach];

static void* cache_put(size_t bytes) { return filled(malloc(bytes), bytes); }
static void* add_user(size_t bytes) { return filled(malloc(bytes), bytes); }

static size_t size(void) { return kSmallest + random_number() % (kLargest - kSmallest); }

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  for (int i = 0; i < kEntries; ++i) {
    const size_t bytes = size();
    if (argc == 2) entries[i] = cache_put(bytes);
    if (i % kEach == 0) users[i / kEach] = add_user(size());
  }
  for (int i = 0; i < kEntries; ++i) {
    if (random_number() % 25 == 0) continue;
    free(entries[i]);
    entries[i] = NULL;
  }
  say_resident("before");
  write_profile(argv[1]);
  for (int i = 0; i < kEntries; ++i) free(entries[i]);
  say_resident("after");
  return users[0] == NULL;
}
