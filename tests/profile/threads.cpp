// Profiles of programs of several threads and processes.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "annex/annex.h"
#include "common/expect_success.h"
#include "common/opaque.h"
#include "common/scenario.h"
#include "profile/raw_profile.h"

using namespace annex_test;

namespace {

constexpr std::size_t kRate = 16 * 1024;

// A thread of the library's own may be made at any time, and what libc allocates for it bears the label of whoever made
// it.
constexpr std::uint64_t kMostOfLibrarysThreads = 4;

bool near(double found, double truth, std::uint64_t samples) {
  return std::abs(found - truth) <= 5 * truth / std::sqrt(static_cast<double>(samples + 1));
}

}  // namespace

// One thread allocates, another frees, while the file is written.
ANNEX_SCENARIO(profile_of_remote_frees) {
  constexpr int kBatches = 60;
  constexpr int kBlocks = 5000;
  static std::vector<void*> batches[kBatches];
  static std::atomic<int> filled{0};
  for (auto& batch : batches) batch.reserve(kBlocks);
  SCENARIO_CHECK(annex_profile_start(kRate) == 0);
  std::thread producer([] {
    const SiteLabel site("sent");
    for (auto& batch : batches) {
      for (int i = 0; i < kBlocks; ++i) batch.push_back(opaque(annex_malloc(100)));
      ++filled;
    }
  });
  std::thread consumer([] {
    for (int done = 0; done < kBatches; ++done) {
      while (filled == done) std::this_thread::yield();
      for (void* block : batches[done]) annex_free(block);
    }
  });
  for (int i = 0; i < 20; ++i) profile_now();
  producer.join();
  consumer.join();
  const ProfiledSite site = profile_now().sites.at("sent");
  SCENARIO_CHECK(near(site.bytes, 100.0 * kBatches * kBlocks, site.samples));
  SCENARIO_CHECK(site.live_samples <= kMostOfLibrarysThreads);
  return 0;
}
TEST(Threads, ThatFreeEachOthersBlocks) { expect_success("profile_of_remote_frees"); }

// Many threads come and go, each with a label of its own, and leave a part of their blocks to the others.
ANNEX_SCENARIO(profile_of_many_threads) {
  static std::vector<void*> left[16];
  for (auto& blocks : left) blocks.reserve(20000);
  SCENARIO_CHECK(annex_profile_start(kRate) == 0);
  for (int round = 0; round < 4; ++round) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([round, t] {
        const SiteLabel site(std::to_string(t).c_str());
        std::vector<void*>& blocks = left[4 * round + t];
        for (int i = 0; i < 20000; ++i) {
          void* const block = opaque(annex_malloc(64 + 16 * static_cast<std::size_t>(t)));
          if (i % 4 != 0) {
            annex_free(block);
          } else {
            blocks.push_back(block);
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  const RawProfile profile = profile_now();
  for (int t = 0; t < 4; ++t) {
    const ProfiledSite& site = profile.sites.at(std::to_string(t));
    const double bytes = 64 + 16.0 * t;
    SCENARIO_CHECK(near(site.bytes, 4 * 20000 * bytes, site.samples));
    SCENARIO_CHECK(near(site.live_bytes, 4 * 5000 * bytes, site.live_samples));
  }
  for (auto& blocks : left) {
    for (void* block : blocks) annex_free(block);
  }
  for (const auto& [label, site] : profile_now().sites)
    SCENARIO_CHECK(label.empty() || site.live_samples <= kMostOfLibrarysThreads);
  return 0;
}
TEST(Threads, ThatComeAndGo) { expect_success("profile_of_many_threads"); }

// One after the other, each for a few blocks: what it leaves ready is handed out another time.
ANNEX_SCENARIO(profile_of_short_threads) {
  constexpr int kThreads = 1500;
  constexpr int kBlocks = 10;
  static void* blocks[kBlocks];
  SCENARIO_CHECK(annex_profile_start(1024) == 0);
  for (int i = 0; i < kThreads; ++i) {
    std::thread([] {
      const SiteLabel site("short");
      for (void*& block : blocks) block = opaque(annex_malloc(64));
      for (void* block : blocks) annex_free(block);
    }).join();
  }
  const ProfiledSite site = profile_now().sites.at("short");
  SCENARIO_CHECK(near(site.bytes, 64.0 * kThreads * kBlocks, site.samples));
  return 0;
}
TEST(Threads, ThatAllocateLittle) { expect_success("profile_of_short_threads"); }

// Another thread's heap is taken from it again and again while it rests: what lay ready is handed out another time.
ANNEX_SCENARIO(profile_of_a_thread_that_rests) {
  constexpr int kTurns = 3000;
  constexpr int kBlocks = 4;
  static std::atomic<int> turn{0};
  static std::atomic<bool> ready{false};
  std::thread worker([] {
    for (int i = 0; i < 100000; ++i) annex_free(opaque(annex_malloc(64)));
    ready = true;
    const SiteLabel site("rests");
    for (int i = 0; i < kTurns; ++i) {
      while (turn != 2 * i + 1) std::this_thread::yield();
      void* blocks[kBlocks];
      for (void*& block : blocks) block = opaque(annex_malloc(64));
      for (void* block : blocks) annex_free(block);
      ++turn;
    }
  });
  while (!ready) std::this_thread::yield();
  SCENARIO_CHECK(annex_profile_start(1024) == 0);
  for (int i = 0; i < kTurns; ++i) {
    ++turn;
    while (turn != 2 * i + 2) std::this_thread::yield();
    annex_purge();
  }
  worker.join();
  const ProfiledSite site = profile_now().sites.at("rests");
  SCENARIO_CHECK(near(site.bytes, 64.0 * kTurns * kBlocks, site.samples));
  return 0;
}
TEST(Threads, ThatRest) { expect_success("profile_of_a_thread_that_rests"); }

// The unwinder allocates with a lock held that it needs for a call stack, where frames have been registered. (Of
// sixteen bytes of code that nobody calls.)
extern "C" [[gnu::weak]] void __register_frame(void*);
ANNEX_SCENARIO(profile_of_registered_frames) {
  alarm(60);
  if (__register_frame == nullptr) return 0;
  struct [[gnu::packed]] Frames {
    std::uint32_t length = 20, id = 0;
    unsigned char common[16] = {1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x80 | 16, 1};
    std::uint32_t its_length = 28, its_common = 28;
    const void* code;
    std::uint64_t code_bytes = 16;
    unsigned char rest[12] = {};
    std::uint32_t end = 0;
  };
  static_assert(sizeof(Frames) == 64);
  static Frames frames[200];
  static char code[sizeof frames / sizeof *frames][64];
  SCENARIO_CHECK(annex_profile_start(1) == 0);
  const SiteLabel site("registered");
  for (std::size_t i = 0; i < sizeof frames / sizeof *frames; ++i) {
    frames[i].code = code[i];
    __register_frame(&frames[i]);
    annex_free(opaque(annex_malloc(1000)));
  }
  SCENARIO_CHECK(profile_now().sites.at("registered").samples >= sizeof frames / sizeof *frames);
  return 0;
}
TEST(Threads, WhoseFramesAreRegistered) { expect_success("profile_of_registered_frames"); }

// A child has what its parent had, and what it does is its own.
ANNEX_SCENARIO(profile_of_forks) {
  std::vector<void*> blocks;
  blocks.reserve(20000);
  SCENARIO_CHECK(annex_profile_start(kRate) == 0);
  std::atomic<bool> over{false};
  std::thread other([&] {
    while (!over) annex_free(opaque(annex_malloc(100)));
  });
  {
    const SiteLabel site("kept");
    for (int i = 0; i < 20000; ++i) blocks.push_back(opaque(annex_malloc(300)));
  }
  const std::uint64_t samples = profile_now().sites.at("kept").live_samples;
  for (int i = 0; i < 200; ++i) {
    const pid_t child = fork();
    SCENARIO_CHECK(child >= 0);
    if (child == 0) {
      if (i % 20 != 0) std::_Exit(profile_now().sites.at("kept").live_samples == samples ? 0 : 1);
      for (void* block : blocks) annex_free(block);
      std::_Exit(profile_now().sites.at("kept").live_samples <= kMostOfLibrarysThreads ? 0 : 1);
    }
    int status = 0;
    SCENARIO_CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
  over = true;
  other.join();
  SCENARIO_CHECK(profile_now().sites.at("kept").live_samples == samples);
  return 0;
}
TEST(Forks, TwoHundred) { expect_success("profile_of_forks"); }

// At exit, to ANNEX_PROFILE: the child of a fork to a file of its own.
ANNEX_SCENARIO(profile_at_exit) {
  void* const block = opaque(annex_malloc(5 << 20));
  if (fork() == 0) std::exit(0);
  int status = 0;
  wait(&status);
  SCENARIO_CHECK(block != nullptr && status == 0);
  return 0;
}
TEST(Forks, HaveFilesOfTheirOwn) {
  char folder[] = "/tmp/annex-profile-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  for (const char* name : {"/raw", "/%p.raw"}) {
    Launch launch;
    launch.scenario = "profile_at_exit";
    launch.environment = {{"ANNEX_PROFILE", folder + std::string(name)}, {"ANNEX_PROFILE_RATE", "64K"}};
    const Outcome outcome = run_scenario(launch);
    EXPECT_EQ(outcome.exit_code, 0) << describe(outcome);
  }
  int complete = 0;
  FILE* const list = popen(("ls -d " + std::string(folder) + "/*").c_str(), "r");
  char line[200];
  while (fgets(line, sizeof line, list) != nullptr) {
    line[strcspn(line, "\n")] = '\0';
    const RawProfile profile = read_profile(line);
    EXPECT_TRUE(profile.complete) << line;
    EXPECT_GE(profile.sites.at("").live_bytes, 5 << 20) << line;
    ++complete;
  }
  pclose(list);
  EXPECT_EQ(complete, 4);
  EXPECT_EQ(system(("rm -r " + std::string(folder)).c_str()), 0);
}
