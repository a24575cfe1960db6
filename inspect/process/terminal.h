// The terminal as annex top uses it: a screen of its own, keys as they are pressed, and all as it was at the end,
// however that comes: by a key, a signal or a Failure. Ctrl-Z leaves it for a while.
#pragma once

#include <termios.h>

#include <chrono>
#include <string>

namespace annex::inspect {

class Terminal {
 public:
  // Whether there is one, for input and output.
  static bool is_there();

  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  struct Size {
    size_t rows, columns;
  };
  static Size size();

  // Shows lines, as many and as much of each as there is room for.
  void show(const std::string& text);

  // What has happened: a key, nothing in that time, a new size (show again), or an end (a signal; the terminal has
  // gone).
  enum class Event { kKey, kTime, kResized, kEnd };
  Event wait(std::chrono::milliseconds time, char* key);

 private:
  void enter();
  void leave();
  Event take_signal();

  int signals_;  // a descriptor from which they are read
  termios before_ = {};
};

}  // namespace annex::inspect
