// Signals between main cores and a support core (SpeedMalloc 4), with its hardware message queues or without (5.2).
//
//   a main core                     link              the support core
//   mallocstart, at its issue  ---- start signal --->  malloc queue --.
//   freestart, at its issue    ---- start signal --->  free queue ----+-> runs the call
//   mallocstart has its value  <--- end signal ------  as soon as the result is known
//
// `requests = "queues"`: of those that have come, calls that allocate go first, and cores have their turns
// (message_queue.h). With `first = "oldest"` it is the queue whose oldest request came first. What finds its queue full
// is written to reserved memory, a line each, and read when there is room.
//
// `requests = "signals"`: no queue. The support core accepts a signal when it is free, of those that stand at it the
// one that came first. A core's next signal leaves it when it knows that the last was accepted, a link later.
//
// The register buffer (SpeedMalloc 5.2): a process's first request brings its system registers, which takes a time of
// its own; without a buffer, every request does.
//
// Simplifications: a signal takes no bandwidth of the link. What is read from reserved memory is there before its turn.
// The response queue is not limited: answers leave one after the other, and none waits at the link.
#pragma once

#include "hardware/channel.h"
#include "machine/memory_system.h"
#include "machine/parameters.h"

namespace annex::sim {

class Signals final : public Channel {
 public:
  Signals(const SupportCoreParameters& parameters, Cluster cluster, MemorySystem& memory);

  std::optional<Cycles> room(unsigned from, Service service) const override;
  Asked ask(Core& main, Service service, Address entry) override;
  Cycles least_delay() const override { return link_; }
  void have_answer(Core& main, Cycles when) override;

  void arrive(CallRequest request, Cycles at) override;
  Cycles next_start(Cycles idle_from) const override;
  CallRequest take(Cycles idle_from, Cycles at) override;
  void begin(Core&, const CallRequest&) override {}
  Cycles answer(Core&, const CallRequest&, Cycles known) override { return known + link_; }

 private:
  const bool queued_;
  const bool mallocs_first_;
  const Cycles link_;
  const Cycles registers_;  // that they take on the link
  const bool keeps_registers_;
  MemorySystem& memory_;
  bool has_registers_ = false;  // of the one process that is simulated
  Room room_;
};

}  // namespace annex::sim
