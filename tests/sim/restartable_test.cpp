#include "guest/restartable.h"

#include <gtest/gtest.h>
#include <linux/rseq.h>

#include <cerrno>

namespace annex::sim {
namespace {

struct RestartableTest : testing::Test {
  alignas(32) struct rseq area = {};
  alignas(32) struct rseq_cs sequence = {};
  Restartable thread;

  static Address of(const void* place) { return reinterpret_cast<Address>(place); }
  int64_t begin(unsigned core) { return thread.call(of(&area), sizeof area, 0, core); }
};

TEST_F(RestartableTest, TellsTheProgramItsCpu) {
  ASSERT_EQ(begin(3), 0);
  EXPECT_EQ(area.cpu_id, 3u);
  EXPECT_EQ(area.cpu_id_start, 3u);
  thread.runs_on(5, false);
  EXPECT_EQ(area.cpu_id, 5u);
}

TEST_F(RestartableTest, WritesItAgainOnlyAfterAnInterruption) {
  ASSERT_EQ(begin(1), 0);
  area.cpu_id_start = 99;  // as TCMalloc does: gone means that it was interrupted
  thread.runs_on(1, false);
  EXPECT_EQ(area.cpu_id_start, 99u);
  thread.runs_on(1, true);
  EXPECT_EQ(area.cpu_id_start, 1u);
  area.cpu_id_start = 99;
  thread.interrupted();
  EXPECT_EQ(area.cpu_id_start, 1u);
  area.cpu_id_start = 99;
  thread.waits();
  thread.runs_on(1, false);
  EXPECT_EQ(area.cpu_id_start, 1u);
}

TEST_F(RestartableTest, KnowsWhenItIsInASequence) {
  EXPECT_FALSE(thread.inside(1000));
  ASSERT_EQ(begin(0), 0);
  EXPECT_FALSE(thread.inside(1000));
  sequence.start_ip = 1000;
  sequence.post_commit_offset = 20;
  area.rseq_cs = of(&sequence);
  EXPECT_FALSE(thread.inside(999));
  EXPECT_TRUE(thread.inside(1000));
  EXPECT_TRUE(thread.inside(1019));
  EXPECT_FALSE(thread.inside(1020));
  area.rseq_cs = 8;  // no memory there
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
  EXPECT_EQ(thread.call(of(&area) + 32, sizeof area, RSEQ_FLAG_UNREGISTER, 0), -EINVAL);
  EXPECT_EQ(thread.call(of(&area), sizeof area, RSEQ_FLAG_UNREGISTER, 0), 0);
  EXPECT_FALSE(thread.used());
}

}  // namespace
}  // namespace annex::sim
