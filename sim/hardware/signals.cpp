// Signals, queued or not: see signals.h.
#include "hardware/signals.h"

#include <algorithm>

namespace annex::sim {

namespace {

// Memory that a queue overflows to, a ring of lines: the address of the one for the n-th request that found it full.
constexpr uint64_t kReservedLines = 1 << 16;
constexpr Address reserved_line(Service queue, uint64_t n) {
  const uint64_t ring = queue == Service::kFree ? 1 : 0;
  return kUnitMemory + ((ring * kReservedLines + n % kReservedLines) << kLineShift);
}

}  // namespace

Signals::Signals(const SupportCoreParameters& parameters, Cluster cluster, MemorySystem& memory)
    : Channel(parameters.queue, cluster),
      queued_(parameters.requests == "queues"),
      mallocs_first_(queued_ && parameters.first == "mallocs"),
      link_(parameters.link),
      registers_(parameters.registers),
      keeps_registers_(parameters.register_buffer > 0),
      memory_(memory),
      room_(cluster.cores, 1) {}

std::optional<Cycles> Signals::room(unsigned from, Service) const {
  if (queued_) return 0;
  const std::optional<Cycles> accepted = room_.of(place_of(from));
  return accepted && *accepted > 0 ? *accepted + link_ : accepted;
}

Channel::Asked Signals::ask(Core& main, Service service, Address entry) {
  const Cycles issued = main.ask_unit(entry, kRdi, Origin::kAllocator);
  if (service == Service::kFree) main.answer(kNoRegister, issued + 1, Cause::kBase);
  const Cycles sent = has_registers_ && keeps_registers_ ? 0 : registers_;
  has_registers_ = true;
  if (!queued_) room_.asked(place_of(main.index()));
  return {issued, issued + link_ + sent};
}

void Signals::have_answer(Core& main, Cycles when) { main.answer(kRax, when, Cause::kUnit); }

void Signals::arrive(CallRequest request, Cycles at) {
  const unsigned from = place_of(request.from);
  Queue& queue = queue_of(request.service);
  if (queued_ && queue.full()) {
    memory_.write_uncached(reserved_line(request.service, queue.statistics().overflowed), at);
  }
  queue.push(std::move(request), from, at);
}

Cycles Signals::next_start(Cycles idle_from) const { return mallocs_.empty() && frees_.empty() ? kNoTime : idle_from; }

CallRequest Signals::take(Cycles, Cycles at) {
  const bool free_first =
      mallocs_.empty() || (!mallocs_first_ && !frees_.empty() && frees_.oldest() < mallocs_.oldest());
  Queue& queue = free_first ? frees_ : mallocs_;
  if (queued_ && queue.in_memory() > 0) {  // the first of those has room now
    const uint64_t first = queue.statistics().overflowed - queue.in_memory();
    memory_.read_uncached(reserved_line(free_first ? Service::kFree : Service::kAllocate, first), at);
  }
  CallRequest request = queue.take(at);
  if (!queued_) room_.taken(place_of(request.from), at);
  return request;
}

}  // namespace annex::sim
