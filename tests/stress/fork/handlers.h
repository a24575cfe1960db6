// A library as programs depend on: its constructor registers fork handlers, and they allocate. See handlers.c.
#pragma once

#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

// Guards what the library keeps; its handlers hold it across the fork, as pthread_atfork's manual says. Only where
// foreign_handlers_lock says so: no allocator can help where it is registered after such a library.
extern pthread_mutex_t foreign_mutex;
extern int foreign_handlers_lock;

// How often each has run in this process.
struct foreign_runs {
  int prepare;
  int parent;
  int child;
};
extern struct foreign_runs foreign_runs;

// Its prepare handler.
void foreign_prepare(void);

// Puts a block where other threads, and the handlers, find it; returns what was there.
void* foreign_swap(unsigned place, void* block);

#ifdef __cplusplus
}
#endif
