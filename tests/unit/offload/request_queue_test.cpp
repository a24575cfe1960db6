// A request is answered or taken back, never both, and never lost.
#include "support/request_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace annex::support {
namespace {

TEST(RequestQueue, ARequestThatNobodyTakesUpIsTakenBack) {
  RequestQueue queue;
  os::Lock lock;
  for (size_t i = 0; i < 20; ++i) {
    Request request = {.what = Request::What::kAllocate, .bytes = i};
    EXPECT_FALSE(queue.ask(&request, 10, lock));
    EXPECT_EQ(request.bytes, i);
    EXPECT_FALSE(queue.has_request());
    EXPECT_FALSE(queue.answer(lock, [](Request*) { FAIL(); }));
  }
}

TEST(RequestQueue, EveryRequestIsServedByOneSide) {
  static RequestQueue queue;
  static os::Lock lock;
  std::atomic<bool> done{false};
  size_t answered = 0;
  std::thread support([&] {
    while (!done.load()) {
      if (queue.has_request() && queue.answer(lock, [](Request* request) { request->bytes *= 2; })) ++answered;
      std::this_thread::yield();
    }
  });
  size_t by_support = 0;
  constexpr size_t kRequests = 20000;
  for (size_t i = 0; i < kRequests; ++i) {
    Request request = {.what = Request::What::kAllocate, .bytes = i};
    if (queue.ask(&request, i % 50, lock)) {
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
