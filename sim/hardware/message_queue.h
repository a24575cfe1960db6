// A hardware message queue of the support core (SpeedMalloc 5.2): requests of one kind, of all cores, by turns.
//
// It has room for some entries; what comes when it is full waits in reserved memory, in the order of its coming, and is
// fetched as soon as there is room again. Who takes from it gets the oldest request of the core whose turn it is.
// Simplification: fetching takes the time that the owner says, for one request as for many.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>

#include "machine/types.h"

namespace annex::sim {

struct QueueStatistics {
  uint64_t requests = 0;    // that came
  uint64_t taken = 0;       // of them
  uint64_t overflowed = 0;  // that found it full
  uint64_t most = 0;        // waiting at a time, those in memory too
  uint64_t waited = 0;      // cycles from coming to being taken, of those taken
  uint64_t area = 0;        // the number that wait, summed over all cycles: by Little's law, what they waited

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("requests", self.requests, "that came");
    visit("taken", self.taken, "of them");
    visit("overflowed", self.overflowed, "that found the queue full");
    visit("most", self.most, "waiting at a time, those in memory too");
    visit("waited", self.waited, "cycles from coming to being taken, of those taken");
    visit("area", self.area, "how many wait, summed over all cycles");
  }
};

template <class Request>
class MessageQueue {
 public:
  MessageQueue(uint32_t entries, unsigned cores) : entries_(entries), cores_(cores) {}

  bool empty() const { return waiting_.empty(); }
  size_t size() const { return waiting_.size(); }
  bool full() const { return waiting_.size() >= entries_; }
  uint64_t in_memory() const { return waiting_.size() - std::min<size_t>(entries_, waiting_.size()); }
  // When the first of those that wait came. Not of an empty one.
  Cycles oldest() const { return waiting_.front().came; }
  // In the order of time, but that a request may be told of late: it came at `at`, before what was counted already.
  void push(Request request, unsigned core, Cycles at) {
    if (at > counted_until_) {
      count_until(at);
    } else {
      statistics_.area += counted_until_ - at;
    }
    ++statistics_.requests;
    statistics_.overflowed += full();
    waiting_.push_back({std::move(request), core, at});
    statistics_.most = std::max<uint64_t>(statistics_.most, waiting_.size());
  }

  // Of those in the queue itself, the oldest of the core whose turn it is. Not of an empty one.
  Request take(Cycles at) {
    const auto end = waiting_.begin() + static_cast<ptrdiff_t>(std::min<size_t>(entries_, waiting_.size()));
    const auto behind = [&](const Entry& entry) { return (entry.core + cores_ - next_core_) % cores_; };
    return take_out(std::min_element(waiting_.begin(), end, [&](auto& a, auto& b) { return behind(a) < behind(b); }),
                    at);
  }
  // The oldest of that core, of which there is one.
  Request take_of(unsigned core, Cycles at) {
    return take_out(std::find_if(waiting_.begin(), waiting_.end(), [&](auto& of) { return of.core == core; }), at);
  }

  const QueueStatistics& statistics() const { return statistics_; }

 private:
  struct Entry {
    Request request;
    unsigned core;
    Cycles came;
  };

  Request take_out(typename std::deque<Entry>::iterator chosen, Cycles at) {
    count_until(at);
    next_core_ = (chosen->core + 1) % cores_;
    statistics_.waited += at - chosen->came;
    ++statistics_.taken;
    Request request = std::move(chosen->request);
    waiting_.erase(chosen);
    return request;
  }
  void count_until(Cycles at) {
    statistics_.area += waiting_.size() * (at - counted_until_);
    counted_until_ = at;
  }

  const uint32_t entries_;
  const unsigned cores_;
  std::deque<Entry> waiting_;  // the first `entries_` in the queue, the others in memory
  unsigned next_core_ = 0;
  Cycles counted_until_ = 0;
  QueueStatistics statistics_;
};

}  // namespace annex::sim
