// How a main core's request comes to a support core, and the answer back: the interface of signals.h and
// shared_memory.h.
//
// Times are told in the order of simulation. A request is announced when its core asks; the support core decides what
// it does at a time when all are announced that can matter then.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hardware/call.h"
#include "hardware/message_queue.h"
#include "hardware/unit.h"
#include "machine/core.h"
#include "machine/types.h"

namespace annex::sim {

struct CallRequest {
  Service service = Service::kAllocate;
  unsigned from = 0;
  uint64_t number = 0;
  Cycles issued = 0;
  Call call;
};

// The main cores that a support core serves.
struct Cluster {
  unsigned first = 0;
  unsigned cores = 1;
};

class Channel {
 public:
  virtual ~Channel() = default;

  // --- at a main core
  // From when on it may ask for that; nothing: what is decided so far does not tell.
  virtual std::optional<Cycles> room(unsigned from, Service service) const = 0;
  struct Asked {
    Cycles issued;
    Cycles arrival;  // when the support core can know
  };
  // It asks, by code in place of the call's that begins at `entry`.
  virtual Asked ask(Core& main, Service service, Address entry) = 0;
  // No request arrives sooner after its core came to it.
  virtual Cycles least_delay() const = 0;
  // The answer can be had from then on; the main core waits for it, and has it in the register of results.
  virtual void have_answer(Core& main, Cycles when) = 0;

  // --- at the support core
  virtual void arrive(CallRequest request, Cycles at) = 0;
  // When one that idles from then on begins with the next of those that have arrived; kNoTime: none has.
  virtual Cycles next_start(Cycles idle_from) const = 0;
  virtual CallRequest take(Cycles idle_from, Cycles at) = 0;
  // Before the call: what it runs to know the request; and after it, to say that it is done.
  virtual void begin(Core& support, const CallRequest& request) = 0;
  // When the answer can be had at the main core. `known`: the result's register has its value.
  virtual Cycles answer(Core& support, const CallRequest& request, Cycles known) = 0;

  const QueueStatistics& mallocs() const { return mallocs_.statistics(); }
  const QueueStatistics& frees() const { return frees_.statistics(); }

 protected:
  using Queue = MessageQueue<CallRequest>;
  Channel(uint32_t entries, Cluster cluster)
      : cluster_(cluster), mallocs_(entries, cluster.cores), frees_(entries, cluster.cores) {}
  unsigned place_of(unsigned core) const { return core - cluster_.first; }  // in its cluster
  Queue& queue_of(Service service) { return service == Service::kAllocate ? mallocs_ : frees_; }

  const Cluster cluster_;
  Queue mallocs_;
  Queue frees_;
};

// Room for so many requests of each core: who finds none waits until one is taken.
class Room {
 public:
  Room(unsigned cores, uint32_t entries) : entries_(entries), waiting_(cores), since_(cores) {}
  void asked(unsigned from) { ++waiting_[from]; }
  void taken(unsigned from, Cycles at) {
    if (waiting_[from]-- == entries_) since_[from] = at;
  }
  std::optional<Cycles> of(unsigned from) const {
    return waiting_[from] < entries_ ? std::optional(since_[from]) : std::nullopt;
  }

 private:
  const uint32_t entries_;
  std::vector<uint32_t> waiting_;
  std::vector<Cycles> since_;
};

}  // namespace annex::sim
