// The scheduler: see scheduler.h.
#include "unit/remote/scheduler.h"

#include <cstdlib>
#include <deque>
#include <memory>

namespace annex::test {

namespace {

using Set = uint32_t;  // of threads, a bit each
constexpr Set only(size_t thread) { return Set{1} << thread; }

struct Step {
  const void* place = nullptr;
  bool writes = false;
  const bool* held = nullptr;
};

bool independent(const Step& a, const Step& b) { return a.place != b.place || (!a.writes && !b.writes); }

// A point at which one of several threads may go next.
struct Choice {
  Set enabled;
  Set asleep;  // those with which every order has been tried already, or will be seen to be the same as one that has
  size_t taken;
};

constexpr size_t kNone = ~size_t{0};

// All state is that of the run in progress: there is one at a time.
struct Run {
  Scheduler::Scenario* scenario = nullptr;
  std::vector<Scheduler::Thread> threads;
  std::vector<Step> next;
  Set alive = 0;
  size_t running = kNone;
  bool tracing = false;
  std::string failure;
  std::string trace;
};
Run* run = nullptr;

// Used again by every run.
Fiber& fiber(size_t thread) {
  static std::deque<Fiber> fibers;
  while (fibers.size() <= thread) fibers.emplace_back();
  return fibers[thread];
}

void body() {
  fiber(run->running).entered();
  run->threads[run->running].body();
  Scheduler::stop_thread();
}

void resume(size_t thread) {
  run->running = thread;
  fiber(thread).resume();
  run->running = kNone;
}

Set enabled() {
  Set set = 0;
  for (size_t t = 0; t < run->threads.size(); ++t) {
    if ((run->alive & only(t)) != 0 && (run->next[t].held == nullptr || !*run->next[t].held)) set |= only(t);
  }
  return set;
}

// The thread that has just run, where it may: orders with few switches come first.
size_t first_of(Set set, size_t last) {
  return last != kNone && (set & only(last)) != 0 ? last : static_cast<size_t>(__builtin_ctz(set));
}

// Runs the scenario once: along `path`, and then as it comes, which is appended to the path.
void run_once(std::vector<Choice>* path) {
  run->threads = run->scenario->threads();
  run->next.assign(run->threads.size(), Step{});
  for (size_t t = 0; t < run->threads.size(); ++t) {
    run->alive |= only(t);
    fiber(t).start(body);
  }
  for (size_t t = 0; t < run->threads.size(); ++t) resume(t);  // to its first step
  Set asleep = 0;
  size_t last = kNone;
  bool nothing_new = false;
  for (size_t depth = 0; run->alive != 0; ++depth) {
    const Set ready = enabled();
    if (ready == 0) return Scheduler::fail("the threads that are left wait for each other");
    if (depth == path->size() && !nothing_new) {
      const Set candidates = ready & ~asleep;
      nothing_new = candidates == 0;  // from here on every order has been run: only to let the threads end
      if (!nothing_new) path->push_back({ready, asleep, first_of(candidates, last)});
    }
    size_t chosen;
    if (depth < path->size() && !nothing_new) {
      const Choice& choice = (*path)[depth];
      if (choice.enabled != ready) abort();  // the scenario is not the same each time
      chosen = choice.taken;
      asleep = 0;
      for (size_t t = 0; t < run->threads.size(); ++t) {
        if ((choice.asleep & only(t)) != 0 && independent(run->next[t], run->next[chosen])) asleep |= only(t);
      }
    } else {
      chosen = first_of(ready, last);
    }
    last = chosen;
    resume(chosen);
  }
  run->scenario->check();
}

// Turns the path into that of the next order to run; false where there is none.
bool advance(std::vector<Choice>* path) {
  for (; !path->empty(); path->pop_back()) {
    Choice& choice = path->back();
    choice.asleep |= only(choice.taken);
    const Set candidates = choice.enabled & ~choice.asleep;
    if (candidates == 0) continue;
    choice.taken = static_cast<size_t>(__builtin_ctz(candidates));
    return true;
  }
  return false;
}

std::string run_along(const std::function<Scheduler::Scenario*()>& make, std::vector<Choice>* path, bool tracing) {
  const std::unique_ptr<Scheduler::Scenario> scenario(make());
  Run current;
  current.scenario = scenario.get();
  current.tracing = tracing;
  run = &current;
  run_once(path);
  run = nullptr;
  return tracing ? current.failure + "\n" + current.trace : current.failure;
}

}  // namespace

Scheduler::Outcome Scheduler::explore(const std::function<Scenario*()>& make) {
  Outcome outcome;
  std::vector<Choice> path;
  do {
    ++outcome.orders;
    if (run_along(make, &path, false).empty()) continue;
    outcome.failure = run_along(make, &path, true);  // once more, written down
    break;
  } while (advance(&path));
  return outcome;
}

void Scheduler::step(const void* place, bool writes, const bool* held) {
  if (run == nullptr || run->running == kNone) return;
  run->next[run->running] = {place, writes, held};
  fiber(run->running).pause();
  run->scenario->reached(place);
}

bool Scheduler::tracing() { return run != nullptr && run->tracing; }

void Scheduler::trace(const std::string& what) {
  if (!tracing()) return;
  const std::string who = run->running == kNone ? "at the end" : run->threads[run->running].name;
  run->trace += "  [" + who + "] " + what + "\n";
}

void Scheduler::fail(const std::string& what) {
  if (run == nullptr) return;
  trace("WRONG: " + what);
  if (run->failure.empty()) run->failure = what;
}

void Scheduler::stop_thread() {
  if (run == nullptr || run->running == kNone) abort();
  run->alive &= ~only(run->running);
  fiber(run->running).finish();
}

}  // namespace annex::test
