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
  EXPECT_FALSE(mailbox.asked());
  EXPECT_FALSE(mailbox.answer([](Request*) { FAIL(); }));
}

TEST(Mailbox, EveryRequestIsServedByOneSide) {
  static Mailbox mailbox;
  std::atomic<bool> done{false};
  size_t answered = 0;
  std::thread support([&] {
    while (!done.load()) {
      if (mailbox.asked() && mailbox.answer([](Request* request) { request->bytes *= 2; })) ++answered;
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
