// Start and end of the library in a process: see lifetime.h.
#include "entry/lifetime.h"

#include <pthread.h>
#include <sys/single_threaded.h>
#include <unistd.h>

#include "front/front.h"
#include "observe/answer.h"
#include "observe/profile_file.h"
#include "observe/report.h"
#include "os/call_stack.h"
#include "os/fork.h"
#include "os/helper_thread.h"
#include "os/message.h"
#include "os/options.h"
#include "os/standard_error.h"
#include "pages/arena.h"
#include "pages/page_heap.h"
#include "pages/purger.h"
#include "sample/sampled_blocks.h"

namespace annex::entry {

extern const char kLifetime = 0;

namespace {

// In a process of one thread no lock needs to be held.
void before_fork() {
  if (!os::fork.begin() || __libc_single_threaded) return;
  os::fork.hold_all([] {
    os::hold_helpers_lock_for_fork();
    Front::hold_locks_for_fork();
    page_heap.hold_lock_for_fork();
  });
}

void after_fork_in_parent() { os::fork.end_in_parent(); }

void after_fork_in_child() {
  page_heap.after_fork_in_child();
  os::forget_helpers_after_fork();
  Front::after_fork_in_child();
  os::fork.end_in_child();
}

// Of all libraries that a process loads at its start, the shared library is initialised first (the linker's initfirst).
// So its fork handlers are registered first: they lock last and unlock first, and handlers of others, which may wait
// for threads that allocate, run while no lock of ours is held. Where others were registered before (the static
// library; a library that is loaded late), their handlers run while all locks are held, and os/fork.h lets them in.
[[gnu::constructor(101)]] void start(int, char**, char** environment) {
  if (environ == nullptr) environ = environment;  // as libc's own start is about to
  os::note_standard_error();
  Front::start();
  const bool ready = page_heap.set_up();
  answer_control.store(observe::answer, std::memory_order_relaxed);
  os::allow_helpers();
  if (os::options.backtrace) os::prepare_call_stacks();
  if (ready && os::options.sample != 0) sample::start();
  if (ready && *os::options.profile != '\0' && !observe::start_profile(os::options.profile_rate))
    os::warn("no profile: there is no unwinder, or no memory");
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  if (os::options.verbose) {
    char buffer[200];
    os::Text text(buffer, sizeof buffer - 1);
    text << annex_version() << ", arena of " << static_cast<uint64_t>(ready ? arenas[0].bytes() >> 20 : 0) << " MiB";
    buffer[text.stored()] = '\0';
    os::warn(buffer);
  }
}

[[gnu::destructor(101)]] void end() {
  if (*os::options.profile != '\0') observe::write_profile_to(os::options.profile, true);
  if (os::options.stats != os::StatsFormat::kOff) observe::report_at_exit();
#ifdef __SANITIZE_THREAD__
  os::NoHelpers joined;  // a thread that is not is a leak to ThreadSanitizer
  joined.for_good();
#endif
}

}  // namespace

}  // namespace annex::entry
