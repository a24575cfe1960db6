// Magazines while samples of a heap profile are taken (core/sample_points.h).
//
// Synchronization: the magazines' thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/block.h"
#include "core/sample_points.h"
#include "front/thread_client.h"
#include "support/magazine.h"

namespace annex::front {

// The stacks change places. False where there are no blocks.
inline bool turn_over(support::Magazine* magazine, SizeClass c) {
  // Also when no more samples are taken: those that there are end.
  if (sample_begins.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    Granule* seen = nullptr;  // most blocks lie in the slab of the one before
    for (void** block = magazine->returned_base; block != magazine->returned; ++block) {
      if (Granule* const head = pointee_of(*block).head; head != seen) end_freed_samples(seen = head);
    }
  }
  return magazine->turn_over(c);
}

// A magazine's window ends where the next sample falls: around whatever changes that, while samples are taken.
class WindowToSample {
 public:
  WindowToSample(ThreadClient* client, SizeClass c) : client_(client), class_(c) {
    if (client->points == nullptr) client->points = SamplePoints::make();
    points_ = client->points;
    if (points_ == nullptr) return;
    points_->follow();
    const uint32_t handed_out = points_->ready[c] - std::min((*client)[c].count_ready(), points_->ready[c]);
    points_->until[c] -= std::min(handed_out, points_->until[c]);
  }
  ~WindowToSample() {
    if (points_ == nullptr) return;
    support::Magazine& magazine = (*client_)[class_];
    const uint32_t until = points_->until[class_];
    if (magazine.count_ready() > until) magazine.narrow_window(until);
    points_->ready[class_] = magazine.count_ready();
  }
  WindowToSample(const WindowToSample&) = delete;
  WindowToSample& operator=(const WindowToSample&) = delete;

  // A block has been taken off the ready ones.
  void hand_out(void* block) {
    if (points_ != nullptr) points_->hand_out(class_, block);
  }

 private:
  ThreadClient* const client_;
  const SizeClass class_;
  SamplePoints* points_ = nullptr;
};

}  // namespace annex::front
