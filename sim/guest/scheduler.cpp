// The simulated machine's scheduler: see scheduler.h.
#include "guest/scheduler.h"

#include <algorithm>

namespace annex::sim {

Scheduler::Scheduler(unsigned cores, Cycles quantum, Cycles slice, Clock& clock)
    : clock_(clock), quantum_(quantum), slice_(slice), cores_(cores) {}

unsigned Scheduler::add(Cycles at) {
  const unsigned thread = static_cast<unsigned>(threads_.size());
  threads_.push_back({.ready_at = at});
  enqueue(thread);
  limit(at);
  return thread;
}

void Scheduler::remove(unsigned thread) {
  dequeue(thread);
  threads_[thread].state = State::kGone;
}

void Scheduler::sleep(unsigned thread, Cycles until) {
  dequeue(thread);
  threads_[thread].state = State::kAsleep;
  threads_[thread].until = until;
  threads_[thread].timed_out = false;
  if (until != kNever) alarms_.push_back(thread);
}

void Scheduler::leave(unsigned thread) {
  dequeue(thread);
  threads_[thread].state = State::kAway;
  ++away_;
}

void Scheduler::wake(unsigned thread, Cycles at) {
  Thread& t = threads_[thread];
  if (t.state != State::kAsleep && t.state != State::kAway) return;  // its time was over just before
  if (t.state == State::kAway) --away_;
  if (t.until != kNever) std::erase(alarms_, thread);
  t.state = State::kReady;
  t.ready_at = at;
  t.until = kNever;
  enqueue(thread);
  limit(at);
}

void Scheduler::hold(unsigned thread, Cycles until) {
  threads_[thread].held = true;
  threads_[thread].ready_at = until;
}

void Scheduler::limit(Cycles at) {
  if (running_ == kNobody) return;
  run_until_ = std::min(run_until_, at + quantum_);
  first_until_ = std::min(first_until_, at);
}

void Scheduler::yield(unsigned thread) {
  Core& core = cores_[threads_[thread].core];
  if (core.queue.size() < 2) return;
  core.queue.pop_front();
  core.queue.push_back(thread);
  threads_[thread].state = State::kReady;
  threads_[thread].ready_at = clock_.now(threads_[thread].core);
  start_slice(threads_[thread].core);
  run_until_ = first_until_ = 0;
}

void Scheduler::enqueue(unsigned thread) {
  Thread& t = threads_[thread];
  unsigned chosen = t.core;
  for (unsigned i = 0; i < cores_.size() && !cores_[chosen].queue.empty(); ++i) {
    if (cores_[i].queue.size() < cores_[chosen].queue.size()) chosen = i;
  }
  t.core = chosen;
  cores_[chosen].queue.push_back(thread);
  if (cores_[chosen].queue.size() <= 2) start_slice(chosen);
}

void Scheduler::start_slice(unsigned core) { cores_[core].slice_end = clock_.now(core) + slice_; }

void Scheduler::dequeue(unsigned thread) {
  Core& core = cores_[threads_[thread].core];
  core.queue.erase(std::find(core.queue.begin(), core.queue.end(), thread));
  if (running_ == thread) running_ = kNobody;
}

void Scheduler::balance() {
  for (unsigned i = 0; i < cores_.size(); ++i) {
    if (!cores_[i].queue.empty()) continue;
    const auto longest = std::max_element(cores_.begin(), cores_.end(),
                                          [](const Core& a, const Core& b) { return a.queue.size() < b.queue.size(); });
    if (longest->queue.size() < 2) return;
    const unsigned thread = longest->queue.back();
    longest->queue.pop_back();
    threads_[thread].core = i;
    cores_[i].queue.push_back(thread);
  }
}

Cycles Scheduler::time_of(const Core& core, unsigned index) const {
  return std::max(clock_.now(index), threads_[core.queue.front()].ready_at);
}

unsigned Scheduler::next(bool alone) {
  if (running_ != kNobody) {
    Thread& was = threads_[running_];
    was.state = State::kReady;
    Core& core = cores_[was.core];
    if (core.queue.size() > 1 && clock_.now(was.core) >= core.slice_end && !was.held) {
      std::rotate(core.queue.begin(), core.queue.begin() + 1, core.queue.end());
      start_slice(was.core);
    }
    running_ = kNobody;
  }
  for (;;) {
    balance();
    unsigned first = kNobody;
    Cycles earliest = kNever;
    Cycles second = kNever;
    for (unsigned i = 0; i < cores_.size(); ++i) {
      if (cores_[i].queue.empty()) continue;
      const Cycles at = time_of(cores_[i], i);
      if (at < earliest) {
        second = earliest;
        earliest = at;
        first = i;
      } else {
        second = std::min(second, at);
      }
    }
    unsigned sleeper = kNobody;
    Cycles alarm = kNever;
    for (const unsigned thread : alarms_) {
      if (threads_[thread].until >= alarm) continue;
      alarm = threads_[thread].until;
      sleeper = thread;
    }
    if (first == kNobody && away_ > 0 && !alone) return kNobody;
    if (sleeper != kNobody && alarm <= earliest) {
      threads_[sleeper].timed_out = true;
      wake(sleeper, alarm);
      continue;
    }
    if (first == kNobody) return kNobody;
    Core& core = cores_[first];
    running_ = core.queue.front();
    threads_[running_].state = State::kRunning;
    if (clock_.now(first) < earliest && !threads_[running_].held) clock_.idle_until(first, earliest);
    threads_[running_].held = false;
    switched_ = core.last != running_;
    if (switched_) {
      if (core.last != kNobody) clock_.switch_thread(first);
      core.last = running_;
      ++switches_;
    }
    second = std::min(second, alarm);
    run_until_ = second == kNever ? kNever : second + quantum_;
    if (core.queue.size() > 1) run_until_ = std::min(run_until_, core.slice_end);
    run_until_ = std::max(run_until_, clock_.now(first) + 1);
    first_until_ = std::min(run_until_, std::max(second, clock_.now(first) + 1));
    return running_;
  }
}

}  // namespace annex::sim
