// Runs a few threads in every order of their steps, one order after the other, and says in which one something failed.
//
// A step is one access that two threads may race for: a load, a store, an exchange, a compare-and-swap, taking or
// letting go of a lock. A thread announces each step before it does it (Scheduler::step), and goes on when it is its
// turn; what lies between two steps is done with the first of them. Memory is sequentially consistent here; whether
// weaker orders are enough is for ThreadSanitizer and the stress tests.
//
// Two steps at different places, or two loads, may change places and nothing differs. Of the orders that differ by that
// alone one is run (sleep sets: Godefroid, Partial-Order Methods for the Verification of Concurrent Systems, 1996,
// chapter 5); so "every order" is meant up to that.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "unit/remote/fiber.h"

namespace annex::test {

class Scheduler {
 public:
  struct Thread {
    std::string name;
    std::function<void()> body;
  };
  // What is run: made anew for each order.
  struct Scenario {
    virtual ~Scenario() = default;
    virtual std::vector<Thread> threads() = 0;
    // When all threads have ended; calls fail() where something is wrong.
    virtual void check() = 0;
    // A step at this place is being done.
    virtual void reached(const void*) {}
  };
  struct Outcome {
    uint64_t orders = 0;  // run, until the first that failed
    std::string failure;  // empty, or what failed and how the threads got there, a line a step
  };

  // Tries every order of the scenario's threads, until one fails.
  static Outcome explore(const std::function<Scenario*()>& make);

  // --- for the threads of a scenario. Outside of explore, they do nothing.

  // Announces a step at a place. Where `held` is given, the step can't be done while *held.
  static void step(const void* place, bool writes, const bool* held = nullptr);
  // Whether the steps are being written down, and what the step just done was.
  static bool tracing();
  static void trace(const std::string& what);
  // Something is wrong; the run goes on to its end.
  static void fail(const std::string& what);
  // The thread that runs goes no further.
  [[noreturn]] static void stop_thread();
};

}  // namespace annex::test
