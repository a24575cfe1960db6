// Memory pressure: see memory_pressure.h.
#include "os/memory_pressure.h"

#include <cerrno>
#include <utility>

#include "os/small_file.h"
#include "os/text.h"

namespace annex::os {

namespace {

constexpr uint64_t kShortestMs = 500;
constexpr uint64_t kLongestMs = 10'000;
constexpr uint64_t kOneOf = 10;  // so much of the time is pressure: a tenth

// What may be better the next time: descriptors or memory have run out.
bool passes(long error) { return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -EINTR; }

}  // namespace

// "some avg10=0.00 avg60=0.00 avg300=0.00 total=0", then the same line of "full".
uint64_t parse_stalled_us(const char* text) {
  constexpr char kLine[] = "some ";
  constexpr char kTotal[] = " total=";
  if (find_in(text, kLine) != text) return kNoStall;
  const char* const end = find_in(text, "\n");
  const char* const total = find_in(text, kTotal);
  if (end == nullptr || total == nullptr || total > end) return kNoStall;  // the number may have been cut off
  uint64_t stalled_us = 0;
  const char* digit = total + sizeof kTotal - 1;
  if (digit == end) return kNoStall;
  for (; digit != end; ++digit) {
    if (*digit < '0' || *digit > '9' || stalled_us > (kNoStall - 9) / 10) return kNoStall;
    stalled_us = stalled_us * 10 + static_cast<uint64_t>(*digit - '0');
  }
  return stalled_us;
}

uint64_t MemoryPressure::Source::more_of(const char* path) {
  if (gone) return 0;
  char text[256];
  const long length = read_start(path, text);
  const uint64_t now_us = parse_stalled_us(text);
  gone = now_us == kNoStall && !passes(length);
  const uint64_t before_us = std::exchange(stalled_us, now_us);
  // A total that has become less is that of another system: the process has been moved to it.
  return before_us == kNoStall || now_us == kNoStall || now_us < before_us ? 0 : now_us - before_us;
}

// The file of the process's own cgroup or, in a container that does not know where that is, of the root of what it
// sees.
void MemoryPressure::find_own() {
  own_.more_of(path_in_own_cgroup("memory.pressure", own_path_, paths_.cgroups, paths_.cgroup_root));
  if (!own_.gone) return;
  own_ = {};
  Text text(own_path_, sizeof own_path_ - 1);
  text << paths_.cgroup_root << "/memory.pressure";
  own_path_[text.stored()] = '\0';
  own_.more_of(own_path_);
}

bool MemoryPressure::look(uint64_t now_ms) {
  if (own_.gone && system_.gone) return false;
  const uint64_t elapsed_ms = now_ms - looked_ms_;
  if (looked_ && elapsed_ms < kShortestMs) return false;
  looked_ms_ = now_ms;
  if (!std::exchange(looked_, true)) {
    find_own();
    system_.more_of(paths_.system);
    return false;
  }
  const uint64_t own_us = own_.more_of(own_path_);
  const uint64_t system_us = system_.more_of(paths_.system);
  return elapsed_ms <= kLongestMs && (own_us >= elapsed_ms * 1000 / kOneOf || system_us >= elapsed_ms * 1000 / kOneOf);
}

}  // namespace annex::os
