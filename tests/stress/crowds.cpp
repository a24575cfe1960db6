// More threads than cores: one core for all of them, hundreds of threads at once, and the step from
// one thread to two.
#include <gtest/gtest.h>

#include <barrier>
#include <vector>

#include "common/expect_success.h"
#include "common/scenario.h"
#include "stress/harness.h"

using namespace annex_test;

ANNEX_SCENARIO(one_core) {
  // Waiting by spinning for a thread that has no core to run on would show as a hang here.
  cpu_set_t cores;
  DEMAND(sched_getaffinity(0, sizeof cores, &cores) == 0);
  int first = 0;
  while (!CPU_ISSET(first, &cores)) ++first;
  CPU_ZERO(&cores);
  CPU_SET(first, &cores);
  DEMAND(sched_setaffinity(0, sizeof cores, &cores) == 0);
  Slots slots;
  in_threads(32, [&](int id) {
    Random random(static_cast<std::uint64_t>(id));
    trade(slots, random, 4000 / kSlowdown);
  });
  return 0;
}

TEST(Crowds, OneCore) { expect_success("one_core"); }

TEST(Crowds, ThreeHundredThreadsAtOnce) {
  constexpr int kThreads = 300;
  Slots slots;
  std::barrier all_here(kThreads);
  in_threads(kThreads, [&](int id) {
    Random random(static_cast<std::uint64_t>(id));
    Parcel* first = make_parcel(100, 1);
    all_here.arrive_and_wait();
    trade(slots, random, 500 / kSlowdown);
    all_here.arrive_and_wait();
    free_parcel(first);
  });
}

ANNEX_SCENARIO(before_the_second_thread) {
  // Blocks from the time when the process had one thread, freed by others, and the other way round.
  std::vector<Parcel*> early(3000);
  Random random(1);
  for (Parcel*& parcel : early) parcel = make_parcel(parcel_size(random), random.next());
  std::vector<Parcel*> late(3000);
  in_threads(3, [&](int id) {
    Random own(static_cast<std::uint64_t>(id));
    for (auto i = static_cast<std::size_t>(id); i < early.size(); i += 3) {
      free_parcel(early[i]);
      late[i] = make_parcel(parcel_size(own), own.next());
      DEMAND(late[i] != nullptr);
    }
  });
  // The other threads are gone again.
  for (Parcel* parcel : late) free_parcel(parcel);
  for (Parcel*& parcel : early) parcel = make_parcel(parcel_size(random), random.next());
  for (Parcel* parcel : early) free_parcel(parcel);
  return 0;
}

TEST(Crowds, BlocksFromBeforeTheSecondThread) { expect_success("before_the_second_thread"); }

ANNEX_SCENARIO(second_thread_at_work) {
  // The first thread is in the middle of its work when the second starts, again and again.
  Slots slots;
  Random random(1);
  for (int i = 0; i < 200 / kSlowdown; ++i) {
    trade(slots, random, 50);
    Thread second([&] {
      Random own(static_cast<std::uint64_t>(i));
      trade(slots, own, 300);
    });
    trade(slots, random, 300);
  }
  return 0;
}

TEST(Crowds, TheSecondThreadStartsWhileTheFirstAllocates) { expect_success("second_thread_at_work"); }
