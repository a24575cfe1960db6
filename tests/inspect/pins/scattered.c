/* (a) A few long-lived blocks among many short-lived ones: remember_session keeps three blocks for each 256 that
 * requests take and free, and these keep a page. load_settings has twelve times as many in use of that size, on pages
 * that it fills. */
#include "resident.h"

enum { kRequests = 4000, kBlocks = 256, kKept = 3, kSettings = 150000 };

static void* sessions[kRequests * kKept];
static void* scratch[kRequests * kBlocks];
static void* settings[kSettings];

static void* remember_session(void) { return filled(malloc(60), 60); }
static void* take_scratch(void) { return filled(malloc(64), 64); }
static void* load_settings(void) { return filled(malloc(64), 64); }

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  for (int i = 0; i < kSettings; ++i) settings[i] = load_settings();
  for (int i = 0; i < kRequests; ++i) {
    for (int j = 0; j < kBlocks; ++j) scratch[i * kBlocks + j] = take_scratch();
    for (int j = 0; argc == 2 && j < kKept; ++j) sessions[i * kKept + j] = remember_session();
  }
  for (int i = 0; i < kRequests * kBlocks; ++i) free(scratch[i]);
  say_resident("before");
  write_profile(argv[1]);
  for (int i = 0; i < kRequests * kKept; ++i) free(sessions[i]);
  say_resident("after");
  return settings[kSettings - 1] == NULL;
}
