// A fork at the moment when another thread makes the key that tells Annex when threads end: the child's threads need
// the lock that is held there.
//
// The moment is made to last: Annex's call for the key comes to this file's pthread_key_create.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "common/opaque.h"

using annex_test::opaque;

namespace {

pthread_t second;
std::atomic<bool> second_started{false};
std::atomic<bool> in_key_create{false};
std::atomic<bool> forked{false};

void end(const char* problem) {
  fprintf(stderr, "%s\n", problem);
  _exit(1);
}

// Whether the process's first thread waits in the kernel. Allocates nothing: Annex is in the middle of something.
bool first_thread_sleeps() {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", getpid());
  char text[512] = {};
  const int file = open(path, O_RDONLY);
  if (file < 0 || read(file, text, sizeof text - 1) <= 0) end("no /proc");
  close(file);
  const char* state = strrchr(text, ')');
  return state != nullptr && state[2] == 'S';
}

void* use_the_heap(void*) {
  void* block = opaque(malloc(100));
  if (block == nullptr) end("no memory");
  free(block);
  return nullptr;
}

void* be_second(void* argument) {
  second = pthread_self();
  second_started = true;
  return use_the_heap(argument);
}

void in_a_thread(void* (*body)(void*)) {
  pthread_t thread;
  if (pthread_create(&thread, nullptr, body, nullptr) != 0 || pthread_join(thread, nullptr) != 0) end("no thread");
}

}  // namespace

extern "C" [[gnu::visibility("default")]] int pthread_key_create(pthread_key_t* key, void (*destructor)(void*)) {
  static const auto create = reinterpret_cast<decltype(&pthread_key_create)>(dlsym(RTLD_NEXT, "pthread_key_create"));
  if (!second_started) return EAGAIN;  // there is no key to be had yet
  if (pthread_equal(pthread_self(), second) && !in_key_create) {
    in_key_create = true;
    // Until the fork has happened, or waits for this thread.
    while (!forked && !first_thread_sleeps()) sched_yield();
  }
  return create(key, destructor);
}

int main() {
  use_the_heap(nullptr);
  pthread_t thread;
  if (pthread_create(&thread, nullptr, be_second, nullptr) != 0) end("no thread");
  while (!in_key_create) sched_yield();
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // for a child that hangs
    in_a_thread(use_the_heap);
    _exit(0);
  }
  forked = true;
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) end("no child");
  pthread_join(thread, nullptr);
  if (status != 0) end("the child hangs: its thread waits for a lock that nobody holds");
  return 0;
}
