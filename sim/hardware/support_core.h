// A core that runs the allocator's calls for main cores: SpeedMalloc's support core (its sections 4 and 5), or an idle
// core in its place.
//
// Requests come by a channel (channel.h): signals, queued in hardware or not, or shared memory. A call is one that the
// program's thread made, captured (call.h); it runs again here, in this core's own pipeline, caches and coherence
// state. With signals the answer leaves when the result's register has its value (`reply = "when-known"`), or when the
// whole call is done; what remains is done before the next request.
//
// Simplification: the heap is changed when the program makes the call: a block that is freed may be given out again
// before this core has run the free.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <unordered_map>
#include <vector>

#include "hardware/call.h"
#include "hardware/channel.h"
#include "hardware/unit.h"
#include "machine/core.h"
#include "machine/parameters.h"

namespace annex::sim {

struct SupportStatistics {
  uint64_t served = 0;
  uint64_t steps = 0;     // of calls, captured
  uint64_t replayed = 0;  // of them, run
  Cycles service = 0;     // from start to end, of all
  Cycles reply = 0;       // from start to the answer's leaving, of those that have one
  Cycles asking = 0;      // of those: from a request's issue to its arrival,
  Cycles answering = 0;   // and from the result to the answer at the core
  Cycles asked_to_answered = 0;
  uint64_t told_late = 0;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("served", self.served, "calls run");
    visit("steps", self.steps, "steps captured: blocks, and instructions of units inside the core");
    visit("replayed", self.replayed, "of them, run here");
    visit("service", self.service, "cycles from start to end, of all calls");
    visit("reply", self.reply, "cycles from start to the answer's leaving, of calls that have one");
    visit("asking", self.asking, "cycles from the request's issue to its arrival, of these");
    visit("answering", self.answering, "cycles from the answer's leaving to its being had, of these");
    visit("asked_to_answered", self.asked_to_answered, "cycles from a request's issue to its answer at the core");
    visit("told_late", self.told_late, "requests that came before something that was decided without them");
  }
};

class SupportCore final : public Unit {
 public:
  // `core`: the one of the machine's that it is.
  SupportCore(const SupportCoreParameters& parameters, Cluster cluster, Core& core, MemorySystem& memory);

  const char* name() const override { return kSupportCore.data(); }
  std::optional<Cycles> room(unsigned from, Service service) const override { return channel_->room(from, service); }
  uint64_t ask(Core& main, Service service, Address entry, Call call) override;
  std::optional<Cycles> answer(uint64_t number) override;
  void have_answer(Core& main, Cycles when) override { channel_->have_answer(main, when); }
  Cycles least_delay() const override { return channel_->least_delay(); }
  void advance(Cycles to) override;
  Cycles decides_next() const override;

  // What ask() does when a main core has asked, so.
  uint64_t request(Service service, unsigned from, Channel::Asked asked, Call call);

  Channel& channel() { return *channel_; }
  const Channel& channel() const { return *channel_; }
  const SupportStatistics& statistics() const { return statistics_; }
  void describe(nlohmann::json& out) const override;

 private:
  struct OnItsWay {
    Cycles arrival;
    CallRequest request;
  };
  struct Later {
    bool operator()(const OnItsWay& a, const OnItsWay& b) const {
      return a.arrival != b.arrival ? a.arrival > b.arrival : a.request.number > b.request.number;
    }
  };

  Cycles next_arrival() const { return coming_.empty() ? kNoTime : coming_.front().arrival; }
  Cycles next_start() const;
  void take_in();
  void serve(Cycles at);
  void run(const Call& call);

  const bool reply_when_known_;
  const bool costs_nothing_;
  Core& core_;
  const std::unique_ptr<Channel> channel_;
  std::vector<OnItsWay> coming_;  // a heap, the first to come at its front
  Cycles now_ = 0;                // of the last that was decided
  uint64_t next_number_ = 0;
  std::unordered_map<uint64_t, Cycles> answers_;
  std::unordered_map<const Block*, Block> last_blocks_;  // of calls, without their return
  SupportStatistics statistics_;
};

}  // namespace annex::sim
