// A magazine: what is freed comes back the youngest first, nothing is lost between the stacks, and malloc sees where
// nothing is ready.
#include "support/magazine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

namespace annex::support {
namespace {

constexpr SizeClass kClass = 0;
constexpr uint32_t kRoom = 256;

class MagazineTest : public testing::Test {
 protected:
  void SetUp() override { magazine.move(first.data() + 1, second.data() + 1, kRoom); }

  void put(uintptr_t from, uintptr_t count) {
    for (uintptr_t i = from; i < from + count; ++i) *magazine.returned++ = reinterpret_cast<void*>(i);
  }
  // As malloc does; 0 where nothing is ready.
  uintptr_t take() {
    if (magazine.ready[-1] == nullptr) return 0;
    return reinterpret_cast<uintptr_t>(*--magazine.ready);
  }

  std::vector<void*> first = std::vector<void*>(kRoom + 1);
  std::vector<void*> second = std::vector<void*>(kRoom + 1);
  Magazine magazine;
};

TEST_F(MagazineTest, ClosedHasNoRoom) {
  Magazine closed;
  EXPECT_TRUE(closed.full());
  EXPECT_EQ(closed.count(), 0u);
  EXPECT_EQ(closed.ready[-1], nullptr);
  closed.lift_floor();
}

TEST_F(MagazineTest, EmptyHasNothingReady) {
  EXPECT_EQ(take(), 0u);
  EXPECT_FALSE(magazine.lower_floor(kClass));
  EXPECT_FALSE(magazine.turn_over(kClass));
  EXPECT_EQ(magazine.room(), kRoom);
}

TEST_F(MagazineTest, TheYoungestIsReadyFirstAndTheRestWaits) {
  const uintptr_t window = usual_limit(kClass);
  put(1, kRoom);
  EXPECT_TRUE(magazine.full());
  EXPECT_TRUE(magazine.turn_over(kClass));
  EXPECT_EQ(magazine.count(), kRoom);
  for (uintptr_t i = 0; i < window; ++i) EXPECT_EQ(take(), kRoom - i);
  EXPECT_EQ(take(), 0u);
  EXPECT_EQ(magazine.count(), kRoom - window);
  EXPECT_TRUE(magazine.lower_floor(kClass));
  EXPECT_EQ(take(), kRoom - window);
}

TEST_F(MagazineTest, BlocksBelowTheFloorComeBackWithTheirStack) {
  put(1, kRoom);
  magazine.turn_over(kClass);
  put(kRoom + 1, 10);
  magazine.turn_over(kClass);
  for (uintptr_t i = 0; i < 10; ++i) EXPECT_EQ(take(), kRoom + 10 - i);
  EXPECT_EQ(magazine.count_returned(), kRoom);
  for (uintptr_t i = 0; i < kRoom; ++i) EXPECT_EQ(reinterpret_cast<uintptr_t>(magazine.returned_base[i]), i + 1);
}

TEST_F(MagazineTest, MovesWithWhatWasReturned) {
  put(1, 10);
  std::vector<void*> one(2 * kRoom + 1), other(2 * kRoom + 1);
  magazine.move(one.data() + 1, other.data() + 1, 2 * kRoom);
  EXPECT_EQ(magazine.room(), 2 * kRoom);
  EXPECT_TRUE(magazine.turn_over(kClass));
  for (uintptr_t i = 10; i > 0; --i) EXPECT_EQ(take(), i);
}

TEST_F(MagazineTest, LosesNothing) {
  std::set<uintptr_t> out;
  uintptr_t next = 1;
  uint32_t random = 1;
  for (int step = 0; step < 200000; ++step) {
    random = random * 1664525 + 1013904223;
    const uint32_t what = random >> 16;
    if (what % 8 == 0) {
      what % 16 == 0 ? magazine.turn_over(kClass) : magazine.lower_floor(kClass);
    } else if ((what & 1024) != 0) {
      if (const uintptr_t block = take()) {
        ASSERT_TRUE(out.insert(block).second);
      }
    } else if (!magazine.full()) {
      const uintptr_t block = out.empty() ? next++ : *out.begin();
      out.erase(block);
      put(block, 1);
    }
    ASSERT_EQ(magazine.count() + out.size(), next - 1);
  }
}

// What a thread is doing that was put to sleep on a fast path, in the steps that others see; the last one says that it
// is done. The blocks of the magazine are numbered from 1; what is freed is 1000.
class Stopped {
 public:
  enum What { kNothing, kMalloc, kFree };
  static constexpr uintptr_t kFreed = 1000;

  Stopped(Magazine* magazine, What what) : magazine_(magazine), what_(what) {}

  int steps() const { return what_ == kNothing ? 0 : 3; }
  void step() {
    if (what_ == kMalloc) {
      if (at_ == 0) top_ = magazine_->ready;
      if (at_ == 1) block_ = top_[-1];
      if (at_ == 2 && block_ != nullptr) magazine_->ready = top_ - 1;
    } else if (what_ == kFree) {
      if (at_ == 0) top_ = magazine_->returned;
      if (at_ == 1 && !full()) *top_ = reinterpret_cast<void*>(kFreed);
      if (at_ == 2 && !full()) magazine_->returned = top_ + 1;
    }
    ++at_;
  }
  bool is_over() const { return at_ == steps(); }
  // The block that malloc has taken; 0 where there is none.
  uintptr_t taken() const { return what_ == kMalloc ? reinterpret_cast<uintptr_t>(block_) : 0; }
  bool has_freed() const { return what_ == kFree && !full(); }

 private:
  bool full() const { return top_ == magazine_->limit; }

  Magazine* magazine_;
  What what_;
  int at_ = 0;
  void** top_ = nullptr;
  void* block_ = nullptr;
};

class TakenAsleepTest : public MagazineTest {
 protected:
  // So many are ready, wait below them, and have been returned.
  void fill(uintptr_t ready, uintptr_t waiting, uintptr_t returned) {
    magazine = {};
    SetUp();
    last_ = 0;
    std::fill(first.begin(), first.end(), nullptr);
    std::fill(second.begin(), second.end(), nullptr);
    const auto add = [this](uintptr_t count) {
      put(last_ + 1, count);
      last_ += count;
    };
    if (waiting > 0) {
      add(waiting + usual_limit(kClass));
      magazine.turn_over(kClass);
      for (uintptr_t i = usual_limit(kClass); i > ready; --i) {
        take();
        --last_;
      }
    } else {
      add(ready);
      magazine.turn_over(kClass);
    }
    add(returned);
  }
  // The rest is as if the slow path did it, with the thread back.
  void expect_each_once(const Stopped& stopped) {
    std::multiset<uintptr_t> found(got_.begin(), got_.end());
    magazine.lift_floor();
    for (void** at = magazine.ready_base; at < magazine.ready; ++at) found.insert(reinterpret_cast<uintptr_t>(*at));
    for (void** at = magazine.returned_base; at < magazine.returned; ++at)
      found.insert(reinterpret_cast<uintptr_t>(*at));
    if (stopped.taken() != 0) found.insert(stopped.taken());
    std::multiset<uintptr_t> expected;
    for (uintptr_t block = 1; block <= last_; ++block) expected.insert(block);
    if (stopped.has_freed()) expected.insert(Stopped::kFreed);
    EXPECT_EQ(found, expected);
  }
  void take_asleep(void** returned_before) {
    magazine.take_asleep(returned_before, [this](void* const* blocks, uint32_t count) {
      for (uint32_t i = 0; i < count; ++i) got_.push_back(reinterpret_cast<uintptr_t>(blocks[i]));
    });
  }

  uintptr_t last_ = 0;
  std::vector<uintptr_t> got_;
};

TEST_F(TakenAsleepTest, EachBlockIsOnceSomewhereWhereverTheThreadWasStopped) {
  constexpr uintptr_t kCounts[] = {0, 1, 2, 5};
  for (const uintptr_t ready : kCounts) {
    for (const uintptr_t waiting : kCounts) {
      for (const uintptr_t returned : {uintptr_t{0}, uintptr_t{1}, uintptr_t{3}, uintptr_t{kRoom}}) {
        for (const auto what : {Stopped::kNothing, Stopped::kMalloc, Stopped::kFree}) {
          const int steps = Stopped(&magazine, what).steps();
          // Taken twice, as by one who was stopped before the end; the step may go on at any time.
          for (int at = 0; at < 64 * (steps + 1); ++at) {
            const int first_look = at % 4, first_take = at / 4 % 4, second_look = at / 16 % 4, second_take = at / 64;
            if (first_look > first_take || first_take > second_look || second_look > second_take) continue;
            fill(ready, waiting, returned);
            got_.clear();
            Stopped stopped(&magazine, what);
            int done = 0;
            const auto go_on_until = [&](int step) {
              for (; done < std::min(step, steps); ++done) stopped.step();
            };
            go_on_until(first_look);
            void** look = magazine.returned;
            go_on_until(first_take);
            take_asleep(look);
            go_on_until(second_look);
            look = magazine.returned;
            go_on_until(second_take);
            take_asleep(look);
            go_on_until(steps);
            ASSERT_TRUE(stopped.is_over());
            expect_each_once(stopped);
            if (HasFailure()) {
              FAIL() << ready << " ready, " << waiting << " wait, " << returned << " returned; step " << what << " at "
                     << first_look << first_take << second_look << second_take;
            }
          }
        }
      }
    }
  }
}

TEST_F(TakenAsleepTest, AllButOneBlockGoes) {
  fill(5, 100, 30);
  take_asleep(magazine.returned);
  EXPECT_EQ(got_.size(), 134u);
  EXPECT_EQ(magazine.count(), 1u);
  fill(0, 0, 30);
  got_.clear();
  take_asleep(magazine.returned);
  EXPECT_EQ(got_.size(), 30u);
  EXPECT_EQ(magazine.count(), 0u);
}

TEST_F(TakenAsleepTest, AClosedOneHasNothing) {
  magazine = {};
  take_asleep(magazine.returned);
  EXPECT_EQ(std::count_if(got_.begin(), got_.end(), [](uintptr_t block) { return block != 0; }), 0);
  EXPECT_EQ(magazine.count(), 0u);
}

}  // namespace
}  // namespace annex::support
