// A thread's outbox: what it has freed of other heaps and they do not have yet. Open batches, and what the channel
// holds.
//
// Synchronization: none; the outbox belongs to one thread.
#pragma once

#include "core/die.h"
#include "core/slab_record.h"
#include "policy/policy.h"
#include "remote/channel.h"
#include "remote/open_batches.h"

namespace annex::remote {

class Outbox {
 public:
  // Takes a block in where that takes no more than writing it down. False where nothing has happened.
  [[gnu::always_inline]] bool add_to_open(Slab* slab, Block* block) { return open_.add_to_open(slab, block); }

  // Takes a block in; `to` as in channel.h. The process ends where the block is the one that was freed last.
  template <class To>
  void add(Slab* slab, Block* block, To to) {
    const auto close = [&](Slab* of, const Chain& chain) { channel_.add(of, chain, to); };
    if (!open_.add(slab, block, close)) [[unlikely]]
      die(kFreedTwice, block, slab);
  }

  template <class To>
  void flush(To to) {
    open_.close_all([&](Slab* slab, const Chain& chain) { channel_.add(slab, chain, to); });
    channel_.flush(to);
  }

 private:
  Policy::Batches open_;
  Policy::Channel channel_;
};

}  // namespace annex::remote
