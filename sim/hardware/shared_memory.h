// Requests by shared memory, as software on an idle core has them (SpeedMalloc 6.4.2, IC-Malloc without its hardware).
//
// Each main core has lines of its own, which it and the support core work on through their caches:
//
//   mailbox    the argument of its call that allocates, and a number that says that it is a new one
//   answer     the result, and that number
//   ring       the blocks that it frees, eight a line
//   tail       how many it has put there
//   head       how many the support core has taken: written once for each eight
//
// A main core writes its argument, then says that it is there by a locked exchange (`publish = "locked"`) or a plain
// store (`"store"`). The support core looks at the mailbox and the tail of each core in turn, `poll` cycles each; one
// that has changed it has to fetch from the main core's cache. The answer is a store, when the call is done; the main
// core has looked at that line before, and fetches it anew when it has changed. While it waits it can do nothing else:
// its window drains. Who finds the ring full waits until an entry is taken.
//
// With `flags = "two"` both are flags, as in NextGen-Malloc's Pseudo Code 1: the main core looks whether the mailbox's
// is clear before it writes there, and the support core clears it when it has answered, so that the line goes back; the
// main core clears the answer's when it has read that (assumed: in the paper nobody does). It is always clear by then.
//
// Simplifications: looking at a line that has not changed costs its cycles and no traffic. The main core sees the
// answer as soon as it is written and fetched.
#pragma once

#include <deque>
#include <vector>

#include "hardware/channel.h"
#include "machine/parameters.h"

namespace annex::sim {

class SharedMemory final : public Channel {
 public:
  SharedMemory(const SupportCoreParameters& parameters, Cluster cluster);

  std::optional<Cycles> room(unsigned from, Service service) const override {
    return service == Service::kFree ? room_.of(place_of(from)) : 0;
  }
  Asked ask(Core& main, Service service, Address entry) override;
  Cycles least_delay() const override { return 0; }
  void have_answer(Core& main, Cycles when) override;

  void arrive(CallRequest request, Cycles at) override;
  Cycles next_start(Cycles idle_from) const override;
  CallRequest take(Cycles idle_from, Cycles at) override;
  void begin(Core& support, const CallRequest& request) override;
  Cycles answer(Core& support, const CallRequest& request, Cycles known) override;

 private:
  enum class Part : uint8_t { kMailbox, kAnswer, kTail, kHead, kRing };
  struct Place {
    unsigned core = 0;  // in the cluster
    Service service = Service::kAllocate;
  };
  struct Found {
    unsigned position = 0;
    Cycles at = kNoTime;
  };

  Address address_of(Part part, unsigned core, uint64_t entry = 0) const;  // of any main core
  Found look(Cycles from) const;
  unsigned position_of(Place place) const { return 2 * place.core + (place.service == Service::kFree); }

  const Cycles poll_;
  const uint32_t entries_;
  const bool locked_;
  const bool flags_;                      // that are cleared
  unsigned next_ = 0;                     // the position that is looked at next
  Room room_;                             // in the rings
  std::vector<uint64_t> put_, got_;       // by core: entries of its ring so far
  std::vector<std::deque<Cycles>> came_;  // by position: when those that wait there came
  Block ask_malloc_, ask_free_, read_answer_, read_malloc_, read_free_, write_answer_, write_head_, clear_mailbox_;
};

}  // namespace annex::sim
