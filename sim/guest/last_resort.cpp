// Exceptions that nobody catches: see last_resort.h.
#include "guest/last_resort.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>

namespace annex::sim {

namespace {

// It takes no memory, of which there may be none.
[[noreturn]] void end() {
  std::array<char, 512> line;
  const auto say = [&](const char* what) {
    const int bytes = std::snprintf(line.data(), line.size() - 1, "annex-sim: the simulator itself failed: %s", what);
    size_t size = bytes < 0 ? 0 : std::min(static_cast<size_t>(bytes), line.size() - 2);
    line[size++] = '\n';
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), size);
    _exit(kDefectStatus);
  };
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::exception& one) {
    say(one.what());
  } catch (...) {
  }
  say("it gave up");
  _exit(kDefectStatus);
}

}  // namespace

void end_on_exceptions() { std::set_terminate(end); }

}  // namespace annex::sim
