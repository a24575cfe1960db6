// A request is answered or withdrawn, never both, and never lost.
#include "support/mailbox.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace annex::support {
namespace {

TEST(Mailbox, ARequestThatNobodyTakesUpIsWithdrawn) {
  Mailbox mailbox;
  Request request = {.what = Request::What::kAllocate, .bytes = 5};
  EXPECT_FALSE(mailbox.ask(&request, 10));
  EXPECT_FALSE(mailbox.has_request());
  EXPECT_FALSE(mailbox.answer([](Request*) { FAIL(); }));
}

// What the child of a fork does with one that was taken up when its thread forked. The support core, which is no more
// there, stands still here until the program has gone on.
Request abandoned(const Request asked, bool* answered) {
  for (bool taken = false;;) {
    Mailbox mailbox;
    Request request = asked;
    std::atomic<bool> over{false};
    std::thread program([&] {
      *answered = mailbox.ask(&request, 1'000'000);
      over = true;
    });
    const auto stand_still = [&](Request*) {
      mailbox.abandon();
      program.join();
    };
    while (!taken && !over) taken = mailbox.answer(stand_still);
    if (taken) return request;
    program.join();  // it was withdrawn before this thread came to it: once more
  }
}

TEST(Mailbox, WhatIsAbandonedIsDoneByTheProgramOrLeftOut) {
  bool answered = true;
  abandoned({.what = Request::What::kAllocate, .bytes = 5}, &answered);
  EXPECT_FALSE(answered);
  int block = 0;
  answered = false;
  EXPECT_EQ(abandoned({.what = Request::What::kResize, .bytes = 5, .block = &block}, &answered).block, nullptr);
  EXPECT_TRUE(answered);
  answered = false;
  abandoned({.what = Request::What::kRelease, .block = &block}, &answered);
  EXPECT_TRUE(answered);
}

TEST(Mailbox, EveryRequestIsServedByOneSide) {
  static Mailbox mailbox;
  std::atomic<bool> done{false};
  size_t answered = 0;
  std::thread support([&] {
    while (!done.load()) {
      if (mailbox.has_request() && mailbox.answer([](Request* request) { request->bytes *= 2; })) ++answered;
      std::this_thread::yield();
    }
  });
  size_t by_support = 0;
  constexpr size_t kRequests = 20000;
  for (size_t i = 0; i < kRequests; ++i) {
    Request request = {.what = Request::What::kAllocate, .bytes = i};
    if (mailbox.ask(&request, i % 50)) {
      ++by_support;
      ASSERT_EQ(request.bytes, 2 * i);
    } else {
      ASSERT_EQ(request.bytes, i);
    }
  }
  done = true;
  support.join();
  EXPECT_EQ(answered, by_support);
}

}  // namespace
}  // namespace annex::support
