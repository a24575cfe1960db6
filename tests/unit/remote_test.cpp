// Message passing: a batch counts what is added, whoever adds; a slab is in an inbox once.
#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "remote/batch.h"
#include "remote/inbox.h"
#include "remote/outbox.h"

namespace annex::remote {
namespace {

struct FakeSlab {
  Granule metadata = {};
  std::vector<char> memory = std::vector<char>(kGranule);
  Block* block(size_t i) { return reinterpret_cast<Block*>(memory.data() + i * 64); }
};

Chain one(Block* block) { return {block, block, 1}; }

TEST(Batch, ALostCountIsNeverMistakenForABlock) {
  FakeSlab slab;
  EXPECT_EQ(add(&slab.metadata, slab.memory.data(), one(slab.block(0))),
            0u);  // offset 0: only the count tells it from empty
  EXPECT_EQ(add(&slab.metadata, slab.memory.data(), one(slab.block(5))), 1u);
  EXPECT_EQ(add(&slab.metadata, slab.memory.data(), one(slab.block(3))), 2u);
  const Chain batch = take(&slab.metadata, slab.memory.data());
  EXPECT_EQ(batch.count, 3u);
  EXPECT_EQ(batch.first, slab.block(3));
  EXPECT_EQ(batch.first->next, slab.block(5));
  EXPECT_EQ(batch.first->next->next, slab.block(0));
  EXPECT_EQ(batch.last, slab.block(0));
  EXPECT_EQ(add(&slab.metadata, slab.memory.data(), one(slab.block(1))), 0u);
}

TEST(Remote, EveryBlockArrivesOnce) {
  constexpr size_t kSlabs = 8;
  constexpr size_t kSenders = 4;
  constexpr size_t kBlocks = 1000;
  std::vector<FakeSlab> slabs(kSlabs);
  Inbox inbox;
  std::atomic<size_t> done{0};
  std::vector<std::thread> senders;
  for (size_t sender = 0; sender < kSenders; ++sender) {
    senders.emplace_back([&, sender] {
      for (size_t i = sender; i < kBlocks; i += kSenders) {
        for (FakeSlab& slab : slabs) {
          if (add(&slab.metadata, slab.memory.data(), one(slab.block(i))) == 0) inbox.post(&slab.metadata);
        }
      }
      ++done;
    });
  }
  std::set<Block*> received;
  bool last_round = false;
  for (;;) {
    inbox.drain([&](Granule* metadata) {
      FakeSlab* slab = nullptr;
      for (FakeSlab& each : slabs) {
        if (&each.metadata == metadata) slab = &each;
      }
      Chain batch = take(metadata, slab->memory.data());
      EXPECT_GT(batch.count, 0u);
      for (Block* block = batch.first; batch.count > 0; block = block->next, --batch.count) {
        EXPECT_TRUE(received.insert(block).second);
        if (batch.count == 1) {
          EXPECT_EQ(block, batch.last);
        }
      }
    });
    if (last_round) break;
    last_round = done == kSenders;
    std::this_thread::yield();
  }
  for (std::thread& sender : senders) sender.join();
  EXPECT_EQ(received.size(), kSlabs * kBlocks);
  EXPECT_TRUE(inbox.empty());
}

TEST(Outbox, SendsEveryBlockOnceInBatchesOfOneSlab) {
  std::vector<FakeSlab> slabs(100);
  Outbox outbox;
  std::set<Block*> sent;
  size_t batches = 0;
  const auto send = [&](Granule* slab, const Chain& chain) {
    ++batches;
    EXPECT_LE(chain.count * block_size(slab->size_class), Outbox::kBudget);
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
  EXPECT_LE(batches, 500 * 64 / Outbox::kBudget);
  for (size_t i = 0; i < 50; ++i) {
    for (size_t s = 1; s < slabs.size(); ++s) EXPECT_TRUE(outbox.add(&slabs[s].metadata, slabs[s].block(i), send));
  }
  outbox.flush(send);
  EXPECT_EQ(sent.size(), 500 + 50 * (slabs.size() - 1));
  const size_t before = batches;
  outbox.flush(send);
  EXPECT_EQ(batches, before);
}

TEST(Remote, CompleteSlabsAreReapedAndTheOthersStay) {
  constexpr SizeClass c = class_of(14000);
  constexpr uint32_t kCapacity = slab_capacity(c);
  std::vector<FakeSlab> slabs(40);
  Inbox inbox;
  bool time_to_reap = false;
  for (size_t s = 0; s < slabs.size(); ++s) {
    FakeSlab& slab = slabs[s];
    slab.metadata.size_class = c;
    // Two that must stay: one that is its heap's current slab, one with a block still out.
    slab.metadata.state = s == 3 ? SlabState::kCurrent : SlabState::kFull;
    for (size_t i = s == 5 ? 1 : 0; i < kCapacity; ++i) {
      const uint32_t count = 1 + add(&slab.metadata, slab.memory.data(), one(slab.block(i)));
      if (count == 1) inbox.post(&slab.metadata);
      if (count == kCapacity) time_to_reap = inbox.completed();
    }
  }
  EXPECT_TRUE(time_to_reap);
  std::set<Granule*> reaped;
  inbox.reap([&](Granule* slab) { EXPECT_TRUE(reaped.insert(slab).second); });
  EXPECT_EQ(reaped.size(), slabs.size() - 2);
  EXPECT_EQ(reaped.count(&slabs[3].metadata) + reaped.count(&slabs[5].metadata), 0u);
  std::set<Granule*> left;
  inbox.drain([&](Granule* slab) { left.insert(slab); });
  EXPECT_EQ(left, (std::set<Granule*>{&slabs[3].metadata, &slabs[5].metadata}));
}

}  // namespace
}  // namespace annex::remote
