// Preloaded into programs whose allocator runs on support cores: for each a thread that does nothing, and lends its
// thread-local data to all of that core's calls (sim/guest/offload.h). It says that it is there by a system call that
// Linux doesn't have. ANNEX_PARKED: how many there are, one if it is not set.
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PARK = 0x616e6e78 };

static _Atomic uint32_t parked;

static void* park(void* unused) {
  syscall(PARK);
  atomic_fetch_add(&parked, 1);
  syscall(SYS_futex, &parked, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  static uint32_t never;
  for (;;) syscall(SYS_futex, &never, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
  return unused;
}

__attribute__((constructor)) static void start(void) {
  const char* wanted = getenv("ANNEX_PARKED");
  const uint32_t count = wanted != NULL ? (uint32_t)atoi(wanted) : 1;
  for (uint32_t i = 0; i < count; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, park, NULL) != 0) {
      fputs("annex-sim: a thread that lends its data to a support core's calls cannot be started\n", stderr);
      _exit(2);
    }
    while (atomic_load(&parked) == i) syscall(SYS_futex, &parked, FUTEX_WAIT_PRIVATE, i, NULL, NULL, 0);
  }
}
