#include "guest/turns.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

#include "fake_clock.h"

namespace annex::sim {
namespace {

constexpr Cycles kQuantum = 100;
constexpr unsigned kThreads = 4;
constexpr unsigned kRounds = 500;

struct Rig {
  FakeClock clock{kThreads, 0};
  Scheduler scheduler{kThreads, kQuantum, kNever, clock};
  std::atomic<bool> attention{false};
  Turns turns{scheduler, attention};
  std::vector<Turns::Seat*> seats;
  std::vector<unsigned> order;  // who ran; not protected: by the turn

  Rig() {
    for (unsigned i = 0; i < kThreads; ++i) {
      scheduler.add(0);
      seats.push_back(&turns.add());
    }
    turns.begin();
  }
  Cycles& time_of(unsigned thread) { return clock.at[scheduler.core_of(thread)]; }
  // What a thread does with its turn: some time passes, more for later threads.
  void work(unsigned thread) {
    order.push_back(thread);
    time_of(thread) += kQuantum + 10 * thread;
  }
};

std::vector<unsigned> order_of(bool with_calls) {
  Rig rig;
  std::vector<std::thread> threads;
  for (unsigned id = 0; id < kThreads; ++id) {
    threads.emplace_back([&rig, id, with_calls] {
      Turns::Seat& seat = *rig.seats[id];
      Turns::hold(seat);
      for (unsigned round = 0; round < kRounds; ++round) {
        rig.work(id);
        if (with_calls && round % 8 == id) {
          rig.scheduler.leave(id);
          rig.turns.pass(id, rig.time_of(id));
          rig.turns.come_back(id, seat);
        } else {
          rig.turns.pass(id, rig.time_of(id));
          Turns::hold(seat);
        }
      }
      rig.scheduler.remove(id);
      rig.turns.pass(id, rig.time_of(id));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return std::move(rig.order);
}

TEST(Turns, AreThoseOfTheScheduler) {
  Rig alone;  // the same, by hand
  std::vector<unsigned> left(kThreads, kRounds);
  for (unsigned id = 0; id != kNobody;) {
    if (left[id] == 0) {
      alone.scheduler.remove(id);
    } else {
      --left[id];
      alone.work(id);
    }
    id = alone.scheduler.next();
  }
  EXPECT_EQ(order_of(false), alone.order);
}

TEST(Turns, ThreadsThatWereAwayComeBack) { EXPECT_EQ(order_of(true).size(), kThreads * kRounds); }

}  // namespace
}  // namespace annex::sim
