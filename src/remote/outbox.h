// A thread's outbox: what it has freed of other heaps and they do not have yet. Open batches, and what the channel
// holds.
//
// With ANNEX_UNBATCHED (targets annex-unbatched-shared, annex-by-slab-unbatched-shared) each block is a batch of its
// own: what batches are worth is the difference.
//
// Synchronization: none; the outbox belongs to one thread.
#pragma once

#include "core/granule.h"
#include "remote/channel.h"
#include "remote/open_batches.h"

namespace annex::remote {

#ifdef ANNEX_UNBATCHED
inline constexpr bool kCollects = false;
#else
inline constexpr bool kCollects = true;
#endif

class Outbox {
 public:
  // Takes a block in where that takes no more than writing it down. False where nothing has happened.
  [[gnu::always_inline]] bool add_to_open(Granule* slab, Block* block) {
    return kCollects && open_.add_to_open(slab, block);
  }

  // Takes a block in; `to` as in channel.h. False where the block is the one that was freed last: then nothing has
  // happened.
  template <class To>
  bool add(Granule* slab, Block* block, To to) {
    if constexpr (!kCollects) {
      channel_.add(slab, {block, block, 1}, to);
      return true;
    }
    return open_.add(slab, block, [&](Granule* of, const Chain& chain) { channel_.add(of, chain, to); });
  }

  template <class To>
  void flush(To to) {
    open_.close_all([&](Granule* slab, const Chain& chain) { channel_.add(slab, chain, to); });
    channel_.flush(to);
  }

 private:
  Batches open_;
  Channel channel_;
};

}  // namespace annex::remote
