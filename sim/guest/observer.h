// The observer: a host thread beside the simulation that shows how far it is, keeps its results safe, and gives up
// where it hangs.
//
//   progress   every 200 ms a line "instructions cycles" to a descriptor
//   results    every second the results so far are written to the file, so that a program that is killed leaves them;
//              at the end they are written once more, and say how it ended
//   watchdog   no instruction for so many seconds: results, a line, exit status 124
//   stop       the other end of the control descriptor is closed: results, exit status 130
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "guest/simulation.h"

namespace annex::sim {

struct ObserverOptions {
  std::string out;    // file of the results
  int progress = -1;  // descriptors; -1: none
  int control = -1;
  uint64_t watchdog_s = 60;  // 0: never
};

class Observer {
 public:
  // `describe` makes the results' text, given how the run ended ("" while it runs).
  Observer(ObserverOptions options, Simulation& simulation, std::function<std::string(const std::string&)> describe);

  void start();
  // The run is over; only the first call counts. By the thread that has the turn, or where none has.
  void finish(const std::string& how);
  bool finished() const { return finished_.load(); }

 private:
  void run();
  void show_progress() const;
  void write(const std::string& how);
  // Results written by the running thread at its next block; by this thread where none runs, if the run is over.
  void write_soon(const std::string& how);

  const ObserverOptions options_;
  Simulation& simulation_;
  const std::function<std::string(const std::string&)> describe_;
  std::timed_mutex mutex_;
  std::string how_;  // what the running thread is asked to write
  std::atomic<bool> finished_{false};
};

}  // namespace annex::sim
