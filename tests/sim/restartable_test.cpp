#include "guest/restartable.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace annex::sim {
namespace {

constexpr uint32_t kUnregister = 1;  // RSEQ_FLAG_UNREGISTER

struct RestartableTest : testing::Test {
  RestartableArea area = {};
  RestartableSequence sequence = {};
  Restartable thread;

  static Address of(const void* place) { return reinterpret_cast<Address>(place); }
  int64_t begin(unsigned core) { return thread.call(of(&area), sizeof area, 0, core); }
};

TEST_F(RestartableTest, TellsTheProgramItsCpu) {
  ASSERT_EQ(begin(3), 0);
  EXPECT_EQ(area.core, 3u);
  EXPECT_EQ(area.core_at_start, 3u);
  thread.runs_on(5, false);
  EXPECT_EQ(area.core, 5u);
}

TEST_F(RestartableTest, WritesItAgainOnlyAfterAnInterruption) {
  ASSERT_EQ(begin(1), 0);
  area.core_at_start = 99;  // as TCMalloc does: gone means that it was interrupted
  thread.runs_on(1, false);
  EXPECT_EQ(area.core_at_start, 99u);
  thread.runs_on(1, true);
  EXPECT_EQ(area.core_at_start, 1u);
  area.core_at_start = 99;
  thread.interrupted();
  EXPECT_EQ(area.core_at_start, 1u);
  area.core_at_start = 99;
  thread.waits();
  thread.runs_on(1, false);
  EXPECT_EQ(area.core_at_start, 1u);
}

TEST_F(RestartableTest, KnowsWhenItIsInASequence) {
  EXPECT_FALSE(thread.inside(1000));
  ASSERT_EQ(begin(0), 0);
  EXPECT_FALSE(thread.inside(1000));
  sequence.start = 1000;
  sequence.bytes = 20;
  area.sequence = of(&sequence);
  EXPECT_FALSE(thread.inside(999));
  EXPECT_TRUE(thread.inside(1000));
  EXPECT_TRUE(thread.inside(1019));
  EXPECT_FALSE(thread.inside(1020));
  area.sequence = 8;  // no memory there
  EXPECT_FALSE(thread.inside(1000));
}

TEST_F(RestartableTest, AnswersAsTheKernel) {
  EXPECT_EQ(thread.call(of(&area), 16, 0, 0), -EINVAL);
  EXPECT_EQ(thread.call(of(&area) + 8, sizeof area, 0, 0), -EINVAL);
  EXPECT_EQ(thread.call(of(&area), sizeof area, 8, 0), -EINVAL);
  EXPECT_EQ(thread.call(32, sizeof area, 0, 0), -EFAULT);
  ASSERT_EQ(begin(0), 0);
  EXPECT_EQ(begin(0), -EBUSY);
  EXPECT_EQ(thread.call(of(&area) + 32, sizeof area, 0, 0), -EINVAL);
  EXPECT_EQ(thread.call(of(&area) + 32, sizeof area, kUnregister, 0), -EINVAL);
  EXPECT_EQ(thread.call(of(&area), sizeof area, kUnregister, 0), 0);
  EXPECT_FALSE(thread.used());
}

}  // namespace
}  // namespace annex::sim
