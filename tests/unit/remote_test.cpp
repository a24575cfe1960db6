// Message passing: a batch counts what is added, whoever adds; a slab is in an inbox once; every block that is sent
// arrives once, by whichever channel.
#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "core/heap.h"
#include "experiments/parts.h"
#include "remote/batch.h"
#include "remote/channel.h"
#include "remote/inbox.h"
#include "remote/message.h"
#include "remote/open_batches.h"
#include "runs.h"

namespace annex::remote {
namespace {

using experiments::BySlab;
using experiments::LeastRecent;
using experiments::LowBits;
using experiments::Random;
using Batches = Policy::Batches;

struct FakeSlab {
  Slab metadata = {};
  std::vector<char> memory = std::vector<char>(kGranule);
  Block* block(size_t i) { return reinterpret_cast<Block*>(memory.data() + i * 64); }
};

Chain one(Block* block) { return {block, block, 1}; }

// A heap as its inbox sees it.
template <class Receive, class LetGo>
struct Heap {
  Receive receive;
  LetGo let_go;
  bool owns(const Slab*) const { return true; }
};
template <class Receive, class LetGo>
Heap(Receive, LetGo) -> Heap<Receive, LetGo>;

const auto not_complete = [](Slab*) { ADD_FAILURE() << "not complete"; };
const auto not_pooled = [](Slab*, const Chain&) { ADD_FAILURE() << "the owner's to take in"; };

TEST(Batch, ALostCountIsNeverMistakenForABlock) {
  FakeSlab slab;
  EXPECT_EQ(add(&slab.metadata, slab.memory.data(), one(slab.block(0))),
            0u);  // offset 0: only the count tells it from empty
  EXPECT_EQ(add(&slab.metadata, slab.memory.data(), one(slab.block(5))), 1u);
  EXPECT_EQ(add(&slab.metadata, slab.memory.data(), one(slab.block(3))), 2u);
  const Chain batch = take_all(&slab.metadata, slab.memory.data());
  EXPECT_EQ(batch.count, 3u);
  EXPECT_EQ(batch.first, slab.block(3));
  EXPECT_EQ(batch.first->next, slab.block(5));
  EXPECT_EQ(batch.first->next->next, slab.block(0));
  EXPECT_EQ(batch.last, slab.block(0));
  EXPECT_EQ(add(&slab.metadata, slab.memory.data(), one(slab.block(1))), 0u);
}

// Slabs that are ones, so that a message leads back to its slab.
class RemoteTest : public ::testing::Test {
 protected:
  static constexpr size_t kSlabs = 8;
  static constexpr size_t kBlocks = slab_capacity(class_of(64));

  void SetUp() override {
    for (Slab*& slab : slabs_) {
      slab = make_slab(class_of(64), {reinterpret_cast<annex::Heap*>(&inbox_), 1});
      ASSERT_NE(slab, nullptr);
    }
  }
  void TearDown() override {
    for (Slab* slab : slabs_) page_heap.give_slab(slab);
  }

  Block* block(size_t slab, size_t i) { return reinterpret_cast<Block*>(start_of(slabs_[slab]) + i * 64); }

  // How the blocks of a chain arrive: each once, linked from first to last.
  auto into_received() {
    return [this](Slab* slab, const Chain& chain) {
      Block* block = chain.first;
      for (uint32_t i = 0; i < chain.count; block = block->next, ++i) {
        EXPECT_EQ(granule_of(block), slab);
        EXPECT_TRUE(received_.insert(block).second);
        if (i + 1 == chain.count) {
          EXPECT_EQ(block, chain.last);
          break;
        }
      }
    };
  }

  // How slabs are let go of: each once, with all its blocks.
  static auto once_complete_into(std::set<Slab*>* let_go) {
    return [let_go](Slab* slab) {
      EXPECT_EQ(take_all(slab, start_of(slab)).count, kBlocks);
      EXPECT_TRUE(let_go->insert(slab).second);
    };
  }

  // Four threads send every block, each by an outbox() of its own, while this one takes in.
  template <class Outbox, class Add>
  void expect_that_all_arrive(Add add) {
    constexpr size_t kSenders = 4;
    std::atomic<size_t> done{0};
    std::vector<std::thread> senders;
    for (size_t sender = 0; sender < kSenders; ++sender) {
      senders.emplace_back([&, sender] {
        Outbox outbox;
        for (size_t i = sender; i < kBlocks; i += kSenders) {
          for (size_t s = 0; s < kSlabs; ++s) add(&outbox, slabs_[s], block(s, i));
        }
        outbox.flush(To{this});
        ++done;
      });
    }
    for (bool last_round = false;;) {
      inbox_.take_in(Heap{into_received(), not_complete});
      if (last_round) break;
      last_round = done == kSenders;
      std::this_thread::yield();
    }
    for (std::thread& sender : senders) sender.join();
    EXPECT_EQ(received_.size(), kSlabs * kBlocks);
    EXPECT_TRUE(inbox_.empty());
  }

  struct To {
    RemoteTest* test;
    char* start(const Slab* slab, const Chain&) const { return start_of(slab); }
    void send(Slab* slab, const Chain& chain) const {
      test->inbox_.send(slab, start_of(slab), chain, Heap{not_pooled, test->ignore_});
    }
    void post(annex::Heap*, const Messages& messages) const {
      test->inbox_.post(messages, Heap{not_pooled, test->ignore_});
    }
  };

  Inbox inbox_;
  Slab* slabs_[kSlabs] = {};
  std::set<Block*> received_;
  // Their slabs are current: what is complete stays.
  void (*ignore_)(Slab*) = [](Slab*) { ADD_FAILURE() << "a current slab was let go of"; };
};

TEST_F(RemoteTest, EveryBlockArrivesOnceByItsSlab) {
  for (Slab* slab : slabs_) slab->state = SlabState::kCurrent;
  expect_that_all_arrive<BySlab>(
      [this](BySlab* channel, Slab* slab, Block* block) { channel->add(slab, one(block), To{this}); });
}

TEST_F(RemoteTest, EveryBlockArrivesOnceByItsHeap) {
  for (Slab* slab : slabs_) slab->state = SlabState::kCurrent;
  expect_that_all_arrive<ByHeap>(
      [this](ByHeap* channel, Slab* slab, Block* block) { channel->add(slab, one(block), To{this}); });
}

TEST_F(RemoteTest, MessagesHoldChainsOfAnyLength) {
  Block* next = nullptr;
  size_t sent = 0;
  for (const uint32_t count : {1u, 2u, kMostBlocks - 1, kMostBlocks}) {
    for (uint32_t i = 0; i + 1 < count; ++i) block(0, sent + i)->next = block(0, sent + i + 1);
    next = make_message({block(0, sent), block(0, sent + count - 1), count}, start_of(slabs_[0]), next);
    EXPECT_EQ(next, block(0, sent + count - 1));
    const Chain chain = chain_of(next, start_of(slabs_[0]));
    EXPECT_EQ(chain.first, block(0, sent));
    EXPECT_EQ(chain.last, next);
    EXPECT_EQ(chain.count, count);
    sent += count;
  }
  size_t messages = 0;
  for (; next != nullptr; next = next_message(next)) ++messages;
  EXPECT_EQ(messages, 4u);
}

// An owner that sleeps: the messages are sorted by slab, and slabs all of whose blocks have come are let go of.
TEST_F(RemoteTest, MessagesThatNobodyTakesInAreSorted) {
  std::set<Slab*> let_go;
  const auto reap = once_complete_into(&let_go);
  for (Slab* slab : slabs_) slab->state = SlabState::kFull;
  BasicInbox<4, 2, kSlabs> inbox;
  for (size_t i = 0; i < kBlocks; ++i) {
    for (size_t s = 0; s < kSlabs; ++s) {
      Block* message = make_message(one(block(s, i)), start_of(slabs_[s]), nullptr);
      inbox.post({message, message, 1}, Heap{not_pooled, reap});
    }
  }
  EXPECT_GE(let_go.size(), kSlabs - 1);
}

TEST_F(RemoteTest, AVisitTakesInSomeOfTheSlabs) {
  BasicInbox<1, kSlabs, 2> inbox;
  for (size_t s = 0; s < kSlabs; ++s) {
    inbox.send(slabs_[s], start_of(slabs_[s]), one(block(s, 0)), Heap{not_pooled, not_complete});
  }
  for (size_t visited = 0; visited < kSlabs;) {
    EXPECT_FALSE(inbox.empty());
    visited += 2;
    inbox.take_in_some(Heap{into_received(), not_complete});
    EXPECT_EQ(received_.size(), visited);
  }
  EXPECT_TRUE(inbox.empty());
}

// What a visit has left is reaped as what was posted since.
TEST_F(RemoteTest, WhatAVisitHasLeftIsReaped) {
  std::set<Slab*> let_go;
  const auto reap = once_complete_into(&let_go);
  for (Slab* slab : slabs_) slab->state = SlabState::kFull;
  BasicInbox<1, 2, 2> inbox;
  const auto send = [&](size_t s, size_t i) {
    inbox.send(slabs_[s], start_of(slabs_[s]), one(block(s, i)), Heap{not_pooled, reap});
  };
  for (size_t s = 0; s < kSlabs; ++s) send(s, 0);
  inbox.take_in_some(Heap{into_received(), not_complete});
  for (size_t i = 1; i < kBlocks; ++i) {
    for (size_t s = 0; s < kSlabs; ++s) send(s, i);
  }
  EXPECT_EQ(let_go.size(), kSlabs - 2);  // those two lack a block that the owner has
}

template <class Cache>
struct OpenBatchesTest : testing::Test {};
using Caches =
    testing::Types<Batches, OpenBatches<8, 2>, OpenBatches<128, 1>, OpenBatches<1, 4>, OpenBatches<8, 4, LeastRecent>,
                   OpenBatches<8, 2, Random>, OpenBatches<8, 2, Longest, LowBits>>;
TYPED_TEST_SUITE(OpenBatchesTest, Caches);

TYPED_TEST(OpenBatchesTest, CloseEveryBlockOnceInBatchesOfOneSlab) {
  std::vector<FakeSlab> slabs(100);
  TypeParam outbox;
  std::set<Block*> sent;
  size_t batches = 0;
  const auto send = [&](Slab* slab, const Chain& chain) {
    ++batches;
    EXPECT_LE(chain.count * block_size(slab->size_class), 2 * kBatchBytes);
    Block* block = chain.first;
    for (uint32_t i = 1; i < chain.count; block = block->next, ++i) EXPECT_TRUE(sent.insert(block).second);
    EXPECT_TRUE(sent.insert(block).second);
    EXPECT_EQ(block, chain.last);
  };
  for (FakeSlab& slab : slabs) slab.metadata.size_class = class_of(64);
  // Runs of one slab make long batches, a crowd of slabs short ones; nothing is lost either way.
  for (size_t i = 0; i < 500; ++i) {
    EXPECT_TRUE(outbox.add(&slabs[0].metadata, slabs[0].block(i), send));
  }
  EXPECT_FALSE(outbox.add(&slabs[0].metadata, slabs[0].block(499), send));
  EXPECT_LE(batches, 500 * 64 / (2 * kBatchBytes));
  for (size_t i = 0; i < 50; ++i) {
    for (size_t s = 1; s < slabs.size(); ++s) EXPECT_TRUE(outbox.add(&slabs[s].metadata, slabs[s].block(i), send));
  }
  outbox.close_all(send);
  EXPECT_EQ(sent.size(), 500 + 50 * (slabs.size() - 1));
  const size_t before = batches;
  outbox.close_all(send);
  EXPECT_EQ(batches, before);
}

TEST(OpenBatches, HoldLessEachWhereManyAreOpen) {
  constexpr size_t kPlaces = Batches::kPlaces;
  std::vector<FakeSlab> slabs(kPlaces);
  for (FakeSlab& slab : slabs) slab.metadata.size_class = class_of(64);
  Batches outbox;
  size_t longer = 0;
  const auto close = [&](Slab*, const Chain& chain) { longer += chain.count * 64 > kBatchBytes; };
  for (size_t i = 0; i < 2 * kBatchBytes / 64; ++i) {
    for (FakeSlab& slab : slabs) EXPECT_TRUE(outbox.add(&slab.metadata, slab.block(i), close));
  }
  outbox.close_all(close);
  EXPECT_GT(longer, 0u);
  EXPECT_LE(longer, kPlaces / 4);
}

// Which of a full set's batches makes room for another slab's: the longest; the one used longest ago.
template <class Cache>
size_t first_closed() {
  std::vector<FakeSlab> slabs(3);
  for (FakeSlab& slab : slabs) slab.metadata.size_class = class_of(64);
  Cache outbox;
  size_t closed = slabs.size();
  const auto close = [&](Slab* slab, const Chain&) {
    for (size_t s = 0; s < slabs.size(); ++s) {
      if (slab == &slabs[s].metadata) closed = s;
    }
  };
  const size_t order[] = {1, 0, 0, 0, 2};  // 0 has more, and was used later
  for (size_t i = 0; i < std::size(order); ++i) outbox.add(&slabs[order[i]].metadata, slabs[order[i]].block(i), close);
  return closed;
}

TEST(OpenBatches, MakeRoomAsTheEvictionSays) {
  EXPECT_EQ((first_closed<OpenBatches<1, 2, Longest>>()), 0u);
  EXPECT_EQ((first_closed<OpenBatches<1, 2, LeastRecent>>()), 1u);
  EXPECT_LT((first_closed<OpenBatches<1, 2, Random>>()), 2u);
  EXPECT_EQ((first_closed<OpenBatches<1, 1>>()), 0u);
  EXPECT_EQ((first_closed<OpenBatches<1, 4>>()), 3u);  // none
}

TEST_F(RemoteTest, CompleteSlabsAreReapedAndTheOthersStay) {
  constexpr SizeClass c = class_of(14000);
  constexpr uint32_t kCapacity = slab_capacity(c);
  std::vector<Slab*> slabs(kReapAt + 1);
  std::set<Slab*> reaped;
  const auto let_go = [&](Slab* slab) { EXPECT_TRUE(reaped.insert(slab).second); };
  for (size_t s = 0; s < slabs.size(); ++s) {
    Slab* slab = slabs[s] = make_slab(c, {nullptr, 1});
    // Two that must stay: one that is its heap's current slab, one with a block still out.
    slab->state = s == 3 ? SlabState::kCurrent : SlabState::kFull;
    EXPECT_TRUE(reaped.empty());
    for (size_t i = s == 5 ? 1 : 0; i < kCapacity; ++i) {
      Block* block = reinterpret_cast<Block*>(start_of(slab) + i * block_size(c));
      inbox_.send(slab, start_of(slab), one(block), Heap{not_pooled, let_go});
    }
  }
  EXPECT_EQ(reaped.size(), slabs.size() - 2);
  EXPECT_EQ(reaped.count(slabs[3]) + reaped.count(slabs[5]), 0u);
  std::set<Slab*> left;
  inbox_.take_in(Heap{[&](Slab* slab, const Chain&) { left.insert(slab); }, let_go});
  EXPECT_EQ(left, (std::set<Slab*>{slabs[3], slabs[5]}));
  for (Slab* slab : slabs) page_heap.give_slab(slab);
}

// Whoever sends or posts to a heap in the pool does the owner's work; once a thread has taken the heap, no longer.
TEST_F(RemoteTest, WhoeverSendsToAPooledHeapTakesIn) {
  const Heap heap{into_received(), not_complete};
  const auto send_one = [&](size_t i) { inbox_.send(slabs_[0], start_of(slabs_[0]), one(block(0, i)), heap); };
  const auto post_one = [&](size_t i) {
    Block* message = make_message(one(block(0, i)), start_of(slabs_[0]), nullptr);
    inbox_.post({message, message, 1}, heap);
  };
  send_one(0);
  post_one(1);
  EXPECT_EQ(received_.size(), 0u);
  inbox_.enter_pool(heap);
  EXPECT_EQ(received_.size(), 2u);
  send_one(2);
  EXPECT_EQ(received_.size(), 3u);
  post_one(3);
  EXPECT_EQ(received_.size(), 4u);
  inbox_.leave_pool();
  send_one(4);
  post_one(5);
  EXPECT_EQ(received_.size(), 4u);
  inbox_.take_in(heap);
  EXPECT_EQ(received_.size(), 6u);
}

}  // namespace
}  // namespace annex::remote
