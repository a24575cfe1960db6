// Start and end of the library in a process: see lifetime.h.
#include "entry/lifetime.h"

#include <pthread.h>

#include "core/arena.h"
#include "front/front.h"
#include "observe/report.h"
#include "os/helper_thread.h"
#include "os/message.h"
#include "os/options.h"

namespace annex::entry {

extern const char kLifetime = 0;

namespace {

// Early (libc and the loader have allocated before, and found the library ready): ours are the first fork handlers, so
// in fork they lock last and unlock first.
[[gnu::constructor(101)]] void start() {
  os::read_options();
  front::start();
  os::allow_helpers();
  pthread_atfork(front::before_fork, front::after_fork_in_parent, front::after_fork_in_child);
  if (os::options.verbose) {
    char buffer[200];
    os::Text text(buffer, sizeof buffer - 1);
    text << annex_version() << ", arena of " << static_cast<uint64_t>(set_up() ? arenas[0].bytes() >> 20 : 0) << " MiB";
    buffer[text.stored()] = '\0';
    os::warn(buffer);
  }
}

[[gnu::destructor(101)]] void end() {
  observe::report_at_exit();
#ifdef __SANITIZE_THREAD__
  os::NoHelpers joined;  // a thread that is not is a leak to ThreadSanitizer
  joined.for_good();
#endif
}

}  // namespace

}  // namespace annex::entry
