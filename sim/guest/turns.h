// Turns: makes the host threads that carry the program's threads run one at a time, in the scheduler's order.
//
// Whoever has the turn may touch the scheduler and the models; everybody else waits in hold(). A thread that comes back
// from a system call that the scheduler knows nothing of (it may have blocked in the host) asks for a turn with
// come_back(): the running thread is called to attention and passes its turn on, or nobody runs and it is taken in
// at once. While nobody runs because one is away and the others are asleep, their time passes as fast as the host's, or
// faster: none is waited for longer than kPatience. All host threads share one host CPU, so a turn changes hands by a
// futex and not by spinning.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <deque>
#include <mutex>
#include <vector>

#include "guest/scheduler.h"

namespace annex::sim {

class Turns {
 public:
  // `attention` is set where the running thread should pass its turn on.
  Turns(Scheduler& scheduler, std::atomic<bool>& attention) : scheduler_(scheduler), attention_(attention) {}

  // A thread's own place: 1 where it has the turn.
  using Seat = std::atomic<uint32_t>;

  // For a thread that the scheduler has added. By the one that has the turn, or by the first of all.
  Seat& add() {
    std::lock_guard guard(mutex_);
    return seats_.emplace_back(0);
  }
  // The first thread of all gets the turn.
  void begin() {
    holder_ = scheduler_.next();
    give(seats_[holder_]);
  }

  // Waits for the turn.
  static void hold(Seat& seat) {
    while (seat.load(std::memory_order_acquire) == 0) {
      syscall(SYS_futex, &seat, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
    }
  }
  // The same for one that is asleep for so long.
  void hold_asleep(Seat& seat, std::chrono::nanoseconds sleeps) {
    const std::chrono::nanoseconds most = std::min<std::chrono::nanoseconds>(sleeps, kPatience);
    const struct timespec limit = {most / std::chrono::seconds(1), (most % std::chrono::seconds(1)).count()};
    while (seat.load(std::memory_order_acquire) == 0) {
      const bool over = syscall(SYS_futex, &seat, FUTEX_WAIT_PRIVATE, 0, &limit, nullptr, 0) != 0 && errno == ETIMEDOUT;
      if (over) go_on_alone(most);
    }
  }

  // By the one that has the turn, at that time: whoever is next gets it, which may be the same thread again.
  void pass(unsigned thread, Cycles now) {
    Seat* next = nullptr;
    {
      std::lock_guard guard(mutex_);
      for (const unsigned back : returned_) scheduler_.wake(back, now);
      returned_.clear();
      waits_.store(false, std::memory_order_relaxed);
      holder_ = scheduler_.next();
      if (holder_ == thread) return;
      if (holder_ == kNobody) idle_since_ = std::chrono::steady_clock::now();
      seats_[thread].store(0, std::memory_order_relaxed);
      if (holder_ != kNobody) next = &seats_[holder_];
    }
    // Not while the lock is held, for which the other might have to wait.
    if (next != nullptr) give(*next);
  }

  // By a thread that is away: takes it in, and waits for its turn. Its own time counts where nobody has the turn.
  void come_back(unsigned thread, Seat& seat) {
    Seat* next = nullptr;
    {
      std::lock_guard guard(mutex_);
      if (holder_ == kNobody) {
        scheduler_.wake(thread, scheduler_.now_of(thread));
        holder_ = scheduler_.next();
        next = &seats_[holder_];
      } else {
        returned_.push_back(thread);
        waits_.store(true, std::memory_order_relaxed);
        attention_.store(true, std::memory_order_release);
      }
    }
    if (next != nullptr) give(*next);
    hold(seat);
  }

  // Somebody has come back and waits to be taken in.
  bool waits() const { return waits_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::chrono::seconds kPatience{1};

  // Nobody has had the turn for so long: whoever's time is over next gets it.
  void go_on_alone(std::chrono::nanoseconds waited) {
    Seat* next = nullptr;
    {
      std::lock_guard guard(mutex_);
      if (holder_ != kNobody || std::chrono::steady_clock::now() - idle_since_ < waited) return;
      holder_ = scheduler_.next(true);
      if (holder_ != kNobody) next = &seats_[holder_];
    }
    if (next != nullptr) give(*next);
  }

  static void give(Seat& seat) {
    seat.store(1, std::memory_order_release);
    syscall(SYS_futex, &seat, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }

  Scheduler& scheduler_;
  std::mutex mutex_;
  std::deque<Seat> seats_;     // by thread
  unsigned holder_ = kNobody;  // of the turn: until it passes it on, whatever the scheduler calls running meanwhile
  std::chrono::steady_clock::time_point idle_since_;  // where nobody has it
  std::vector<unsigned> returned_;
  std::atomic<bool>& attention_;
  std::atomic<bool> waits_{false};
};

}  // namespace annex::sim
