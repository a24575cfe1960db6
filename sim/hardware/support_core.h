// SpeedMalloc's support core: a small core that runs the allocator's calls for all main cores (its sections 4 and 5).
//
//   a main core                     link              the support core
//   mallocstart, at its issue  ---- start signal --->  malloc queue --.
//   freestart, at its issue    ---- start signal --->  free queue ----+-> its pipeline runs the call
//   mallocstart has its value  <--- end signal ------  as soon as the result is known
//
// Requests come by a link of fixed latency. Of those that have come, calls that allocate go first, and cores have their
// turns (message_queue.h). A call is one that the program's thread made, captured (call.h); it runs again here, in this
// core's own pipeline, caches and coherence state. The answer leaves when the result's register has its value
// (`reply = "when-known"`), or when the whole call is done; what remains is done before the next request.
//
// Requests may be announced before they come. advance(to) says that all are announced that come until then, and
// decides all that follows from it; until a request has its answer, ask again with more time.
//
// What finds its queue full is written to reserved memory, a line each, and read when there is room.
//
// Simplifications: the end signal waits for nobody. What is read from reserved memory is there before its turn. The
// heap is changed when the program makes the call: a block that is freed may be given out again before this core has
// run the free.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <unordered_map>
#include <vector>

#include "hardware/call.h"
#include "hardware/message_queue.h"
#include "machine/core.h"
#include "machine/parameters.h"

namespace annex::sim {

enum class Service : uint8_t { kAllocate, kFree };

struct SupportStatistics {
  uint64_t served = 0;
  uint64_t steps = 0;     // of calls, captured
  uint64_t replayed = 0;  // of them, run
  Cycles service = 0;     // from start to end, of all
  Cycles reply = 0;       // from start to the answer's leaving, of those that have one
  Cycles asked_to_answered = 0;
  uint64_t told_late = 0;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("served", self.served, "calls run");
    visit("steps", self.steps, "blocks captured");
    visit("replayed", self.replayed, "of them, run here");
    visit("service", self.service, "cycles from start to end, of all calls");
    visit("reply", self.reply, "cycles from start to the answer's leaving, of calls that have one");
    visit("asked_to_answered", self.asked_to_answered, "cycles from a request's issue to its answer at the core");
    visit("told_late", self.told_late, "requests that came before something that was decided without them");
  }
};

class SupportCore {
 public:
  // `core`: the one of the machine's that it is.
  SupportCore(const SupportCoreParameters& parameters, unsigned main_cores, Core& core, MemorySystem& memory);

  // A main core's request, issued at that time. Its number.
  uint64_t request(Service service, unsigned from, Cycles issued, Call call);
  // When it is here, if issued then.
  Cycles arrival(Cycles issued) const { return issued + link_; }

  // No request comes any more that is here before that time.
  void advance(Cycles to);
  // When the answer is at the core that asked, once it is decided; then it is forgotten.
  std::optional<Cycles> answer(uint64_t number);
  // The time up to which all must be known before anything more can be decided; kNoTime: nothing waits.
  Cycles decides_next() const;

  static constexpr Cycles kNoTime = ~Cycles{0};

  const SupportStatistics& statistics() const { return statistics_; }
  const QueueStatistics& mallocs() const { return mallocs_.statistics(); }
  const QueueStatistics& frees() const { return frees_.statistics(); }
  void describe(nlohmann::json& out) const;

 private:
  struct Request {
    Service service;
    unsigned from;
    uint64_t number;
    Cycles issued;
    Call call;
  };
  struct OnItsWay {
    Cycles arrival;
    Request request;
  };
  struct Later {
    bool operator()(const OnItsWay& a, const OnItsWay& b) const {
      return a.arrival != b.arrival ? a.arrival > b.arrival : a.request.number > b.request.number;
    }
  };

  Cycles next_arrival() const { return coming_.empty() ? kNoTime : coming_.front().arrival; }
  Cycles next_start() const;
  using Queue = MessageQueue<Request>;
  Queue& queue_of(Service service) { return service == Service::kAllocate ? mallocs_ : frees_; }
  void take_in();
  void serve(Cycles at);
  void run(const Call& call);

  const Cycles link_;
  const bool reply_when_known_;
  const bool costs_nothing_;
  Core& core_;
  MemorySystem& memory_;
  std::vector<OnItsWay> coming_;  // a heap, the first to come at its front
  Queue mallocs_;
  Queue frees_;
  Cycles now_ = 0;  // of the last that was decided
  uint64_t next_number_ = 0;
  std::unordered_map<uint64_t, Cycles> answers_;
  std::unordered_map<const Block*, Block> last_blocks_;  // of calls, without their return
  SupportStatistics statistics_;
};

}  // namespace annex::sim
