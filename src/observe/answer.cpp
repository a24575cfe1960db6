// Answers to other processes: see answer.h.
#include "observe/answer.h"

#include <link.h>

#include "front/front.h"
#include "observe/profile_file.h"
#include "os/control.h"
#include "pages/page_heap.h"
#include "profile/samples.h"

#pragma weak _r_debug

namespace annex::observe {

namespace {

// To begin a profile loads the unwinder, which the loader can't do while this thread is in the middle of loading
// something else.
bool can_load() { return &_r_debug == nullptr || _r_debug.r_state == r_debug::RT_CONSISTENT; }

}  // namespace

void answer() {
  const uint32_t seen = os::control.wanted.load(std::memory_order_relaxed);
  if ((seen & os::Control::kStartProfile) != 0 && !can_load()) {
    page_heap.books.slow_path_called.store(true, std::memory_order_relaxed);  // later
    return;
  }
  const uint32_t wanted = os::control.wanted.exchange(0, std::memory_order_acquire);
  if (wanted == 0) return;
  if ((wanted & os::Control::kTrim) != 0) {
    os::control.given_back.store(Front::give_back(true), std::memory_order_relaxed);
  }
  if ((wanted & os::Control::kStartProfile) != 0) start_profile(os::control.rate.load(std::memory_order_relaxed));
  if ((wanted & os::Control::kStopProfile) != 0) profile::stop();
  os::control.done.fetch_add(1, std::memory_order_release);
}

}  // namespace annex::observe
