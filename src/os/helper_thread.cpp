// The helper thread: see helper_thread.h.
#include "os/helper_thread.h"

#include <linux/futex.h>
#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>

#include "os/system_call.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define ANNEX_HELPER_IS_PTHREAD 1
#include <pthread.h>
#endif

namespace annex::os {

#ifdef ANNEX_HELPER_IS_PTHREAD

// The sanitizers keep per-thread state and must know every thread.
bool HelperThread::start(Body* body, void* argument) {
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  const bool started = pthread_create(&thread, &attributes, body, argument) == 0;
  pthread_attr_destroy(&attributes);
  return started;
}

#else

namespace {

constexpr long kFlags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                        CLONE_CHILD_CLEARTID | CLONE_PARENT_SETTID;

}  // namespace

long HelperThread::clone_onto_stack(Body* body, void* argument) {
  // The new thread starts with an empty stack, so it must not return through this frame: it calls body and exits.
  void** top = reinterpret_cast<void**>(stack_ + kStackBytes);
  *--top = argument;
  *--top = reinterpret_cast<void*>(body);
#if defined(__x86_64__)
  long result;
  register long r10 asm("r10") = reinterpret_cast<long>(&stack_user_);
  register long r8 asm("r8") = 0;
  asm volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"
      "pop %%rax\n\t"
      "pop %%rdi\n\t"
      "call *%%rax\n\t"
      "mov %[exit], %%eax\n\t"
      "xor %%edi, %%edi\n\t"
      "syscall\n\t"
      "1:"
      : "=a"(result)
      : "a"(SYS_clone), "D"(kFlags), "S"(top), "d"(&stack_user_), "r"(r10), "r"(r8), [exit] "i"(SYS_exit)
      : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 asm("x8") = SYS_clone;
  register long x0 asm("x0") = kFlags;
  register long x1 asm("x1") = reinterpret_cast<long>(top);
  register long x2 asm("x2") = reinterpret_cast<long>(&stack_user_);
  register long x3 asm("x3") = 0;
  register long x4 asm("x4") = reinterpret_cast<long>(&stack_user_);
  asm volatile(
      "svc 0\n\t"
      "cbnz x0, 1f\n\t"
      "mov x29, xzr\n\t"
      "ldp x9, x0, [sp], #16\n\t"
      "blr x9\n\t"
      "mov x8, %[exit]\n\t"
      "mov x0, xzr\n\t"
      "svc 0\n\t"
      "1:"
      : "+r"(x0)
      : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), [exit] "i"(SYS_exit)
      : "x9", "x29", "x30", "memory");
  return x0;
#endif
}

bool HelperThread::start(Body* body, void* argument) {
  // The last helper has said that it is done; wait for the few instructions until its stack is free.
  while (const uint32_t user = stack_user_.load(std::memory_order_acquire)) {
    system_call(SYS_futex, reinterpret_cast<long>(&stack_user_), FUTEX_WAIT, user);
  }
  uint64_t all = ~uint64_t{0};
  uint64_t saved = 0;
  system_call(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, reinterpret_cast<long>(&all), reinterpret_cast<long>(&saved),
              sizeof all);
  const long id = clone_onto_stack(body, argument);
  system_call(SYS_rt_sigprocmask, 2, reinterpret_cast<long>(&saved), 0, sizeof saved);
  if (id < 0) stack_user_.store(0, std::memory_order_relaxed);
  return id > 0;
}

#endif

void helper_sleep_ms(long milliseconds) {
  struct timespec time = {milliseconds / 1000, (milliseconds % 1000) * 1000000};
  system_call(SYS_nanosleep, reinterpret_cast<long>(&time), 0);
}

void helper_is_named(const char* name) { system_call(SYS_prctl, PR_SET_NAME, reinterpret_cast<long>(name)); }

}  // namespace annex::os
