// One thread allocates, another that never allocates frees: what it frees must come back to the
// first, or memory grows without bound. Resident memory stays within 1.5 times the live bytes plus
// 8 MiB. In the hardened flavour the live bytes include the canary behind each block, which takes a
// block of 64 bytes to the next size class.
//
// Each case is a process of its own, so that the resident set holds nothing else.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "common/flavour.h"
#include "common/own_memory.h"
#include "common/resident.h"
#include "common/scenario.h"
#include "stress/harness.h"

using namespace annex_test;

namespace {

// A ring from the allocating thread to the freeing one, in memory of the test's own. A full ring is
// the live set.
struct Ring {
  std::atomic<std::size_t> written{0};
  std::atomic<std::size_t> read{0};
  std::size_t slots;
  Parcel** items;
};

void* free_all(void* argument) {
  Ring& ring = *static_cast<Ring*>(argument);
  for (std::size_t at = 0;; ++at) {
    while (ring.written.load(std::memory_order_acquire) == at) sched_yield();
    Parcel* parcel = ring.items[at % ring.slots];
    ring.read.store(at + 1, std::memory_order_release);
    if (parcel == nullptr) return nullptr;
    free_parcel(parcel);
  }
}

void send(Ring& ring, std::size_t at, Parcel* parcel) {
  while (at - ring.read.load(std::memory_order_acquire) >= ring.slots) sched_yield();
  ring.items[at % ring.slots] = parcel;
  ring.written.store(at + 1, std::memory_order_release);
}

// Sizes around `middle`: one size where it is odd, else a spread of a factor of four.
std::size_t size_of(std::size_t middle, Random& random) {
  return middle % 2 == 1 ? middle + 1 : random.between(middle / 2, middle * 2);
}

void demand_bounded(std::size_t live) {
  const std::size_t allowed = live + live / 2 + 8 * kMiB;
  const annex_stats_t stats = stats_now();
  const std::size_t heap = stats.slabs + stats.used_spans + stats.dirty;
#ifdef ANNEX_TEST_SANITIZED
  // The sanitizers' own memory is in the resident set: only Annex's books can be asked.
  const std::size_t resident = heap;
#else
  const std::size_t resident = resident_bytes();
#endif
  if (resident <= allowed && heap <= allowed) return;
  fprintf(stderr, "resident %zu, heap %zu, live %zu, allowed %zu\n", resident, heap, live, allowed);
  _exit(1);
}

int stream(std::size_t middle, std::size_t live) {
  static OwnMemory own;
  Ring ring;
  // The mean of between(m / 2, m * 2) is 1.25 m.
  ring.slots = live / (middle % 2 == 1 ? middle + 1 : middle * 5 / 4);
  ring.items = static_cast<Parcel**>(own.allocate(ring.slots * sizeof(Parcel*)));
  constexpr std::size_t kClassForACanary = 16;
  if (flavour() == Flavour::kHardened) live += ring.slots * kClassForACanary;
  Random random(middle);
  pthread_t freer;
  DEMAND(pthread_create(&freer, nullptr, free_all, &ring) == 0);
  const std::size_t parcels = ring.slots * (kSlowdown > 1 ? 5 : 16);
  std::size_t at = 0;
  for (; at < parcels; ++at) {
    Parcel* parcel = make_parcel(size_of(middle, random), at);
    DEMAND(parcel != nullptr);
    send(ring, at, parcel);
    if (at % (ring.slots / 4 + 1) == 0) demand_bounded(live);
  }
  demand_bounded(live);
  send(ring, at, nullptr);
  DEMAND(pthread_join(freer, nullptr) == 0);
  own.deallocate(ring.items, ring.slots * sizeof(Parcel*));
  return 0;
}

}  // namespace

ANNEX_SCENARIO(silent_freer) {
  std::size_t middle = 0;
  std::size_t live_mib = 0;
  DEMAND(sscanf(scenario_argument(), "%zu %zu", &middle, &live_mib) == 2);
  return stream(middle, live_mib * kMiB);
}

TEST(SilentFreer, ResidentMemoryStaysBounded) {
  // Odd: one size only. Live bytes in MiB: a few, where the fixed part decides, and many, where the
  // factor does.
#ifdef ANNEX_TEST_SANITIZED
  for (const char* argument : {"63 4", "160 8", "3000 8", "20000 16", "1000000 32"}) {
#else
  for (const char* argument :
       {"63 4", "63 32", "160 32", "1023 48", "3000 48", "12001 64", "20000 64", "100000 64", "1000000 64"}) {
#endif
    Launch launch;
    launch.scenario = "silent_freer";
    launch.argument = argument;
    const Outcome outcome = run_scenario(launch);
    EXPECT_EQ(outcome.exit_code, 0) << argument << ": " << describe(outcome);
  }
}
