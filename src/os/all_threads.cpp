// A barrier in all threads: see all_threads.h.
#include "os/all_threads.h"

#include <linux/membarrier.h>

#include <atomic>

#include "os/helper_thread.h"
#include "os/options.h"
#include "os/system_call.h"

#if defined(__SANITIZE_THREAD__)
extern "C" void AnnotateIgnoreReadsBegin(const char* file, int line);
extern "C" void AnnotateIgnoreReadsEnd(const char* file, int line);
extern "C" void AnnotateIgnoreWritesBegin(const char* file, int line);
extern "C" void AnnotateIgnoreWritesEnd(const char* file, int line);
#endif

namespace annex::os {

namespace {

long membarrier(int command) { return system_call(SYS_membarrier, command, 0, 0); }

constinit std::atomic<bool> impossible{false};

bool nobody_takes() { return options.background == Background::kNone || HelperThread::ruled_out(); }

}  // namespace

bool barriers_ruled_out() { return impossible.load(std::memory_order_relaxed) || nobody_takes(); }

// A process that has forked may have to register again.
[[gnu::cold]] bool can_have_barriers() {
  if (barriers_ruled_out()) return false;
  const bool can = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
  if (!can) impossible.store(true, std::memory_order_relaxed);
  return can;
}

[[gnu::cold]] bool barrier_in_all_threads() {
  return !barriers_ruled_out() && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
}

long thread_id() { return nobody_takes() ? 0 : system_call(SYS_gettid); }

[[gnu::cold]] bool thread_exists(long thread) {
  return thread != 0 && system_call(SYS_tgkill, system_call(SYS_getpid), thread, 0) == 0;
}

#if defined(__SANITIZE_THREAD__)
UnseenBySanitizer::UnseenBySanitizer() {
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}
UnseenBySanitizer::~UnseenBySanitizer() {
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}
#else
UnseenBySanitizer::UnseenBySanitizer() = default;
UnseenBySanitizer::~UnseenBySanitizer() = default;
#endif

}  // namespace annex::os
