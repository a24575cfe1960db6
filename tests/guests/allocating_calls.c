// A library, preloaded, that stands before every function of libc which Annex calls and another library may well
// replace (tracers, shifted time, fault injection), and allocates and frees in each. Whatever Annex calls with a lock
// held hangs. The list is the one of imports_test.py, but for what the compiler calls (memcpy, memset, memcmp,
// memmove).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static __thread volatile int inside;  // volatile: to the compiler, malloc does not come back here
static __thread unsigned turn;

static void allocate(void) {
  if (inside) return;
  inside = 1;
  for (int i = 0; i < 6; ++i) {
    void* volatile block = malloc(64 + (turn++ * 977) % 9000);
    free(block);
  }
  void* volatile large = malloc(100000 + (turn % 8) * 70000);
  free(large);
  inside = 0;
}

static void* next(const char* name) {
  const int before = inside;
  inside = 1;
  void* const found = dlsym(RTLD_NEXT, name);
  inside = before;
  return found;
}

#define BEFORE(type, name, parameters, arguments)             \
  type name parameters {                                      \
    static type(*real) parameters;                            \
    if (real == NULL) real = (type(*) parameters)next(#name); \
    allocate();                                               \
    return real arguments;                                    \
  }

BEFORE(int, clock_gettime, (clockid_t clock, struct timespec* time), (clock, time))
BEFORE(int, close, (int file), (file))
BEFORE(unsigned long, getauxval, (unsigned long type), (type))
BEFORE(pid_t, getpid, (void), ())
BEFORE(pid_t, gettid, (void), ())
BEFORE(int, getrlimit, (__rlimit_resource_t which, struct rlimit* limit), (which, limit))
BEFORE(int, pthread_attr_init, (pthread_attr_t * attributes), (attributes))
BEFORE(int, pthread_attr_destroy, (pthread_attr_t * attributes), (attributes))
BEFORE(int, pthread_attr_setstacksize, (pthread_attr_t * attributes, size_t size), (attributes, size))
BEFORE(int, pthread_create, (pthread_t * thread, const pthread_attr_t* attributes, void* (*run)(void*), void* of),
       (thread, attributes, run, of))
BEFORE(int, pthread_join, (pthread_t thread, void** result), (thread, result))
BEFORE(int, pthread_tryjoin_np, (pthread_t thread, void** result), (thread, result))
BEFORE(int, pthread_key_create, (pthread_key_t * key, void (*end)(void*)), (key, end))
BEFORE(int, pthread_key_delete, (pthread_key_t key), (key))
BEFORE(int, pthread_setspecific, (pthread_key_t key, const void* value), (key, value))
BEFORE(pthread_t, pthread_self, (void), ())
BEFORE(int, pthread_setcancelstate, (int state, int* before), (state, before))
BEFORE(int, pthread_sigmask, (int how, const sigset_t* set, sigset_t* before), (how, set, before))
BEFORE(int, raise, (int signal), (signal))
BEFORE(int, sched_yield, (void), ())
BEFORE(int, sigaction, (int signal, const struct sigaction* action, struct sigaction* before), (signal, action, before))
BEFORE(int, sigemptyset, (sigset_t * set), (set))
BEFORE(int, sigfillset, (sigset_t * set), (set))
BEFORE(long, sysconf, (int name), (name))
BEFORE(ssize_t, write, (int file, const void* bytes, size_t count), (file, bytes, count))
#undef strcmp
#undef strncmp
#undef strchr
#undef strlen
#undef strspn
#undef strcspn
#undef strstr
BEFORE(int, strcmp, (const char* a, const char* b), (a, b))
BEFORE(int, strncmp, (const char* a, const char* b, size_t most), (a, b, most))
BEFORE(char*, strchr, (const char* text, int c), (text, c))
BEFORE(char*, strstr, (const char* text, const char* part), (text, part))
BEFORE(size_t, strlen, (const char* text), (text))
BEFORE(size_t, strspn, (const char* text, const char* set), (text, set))
BEFORE(size_t, strcspn, (const char* text, const char* set), (text, set))
