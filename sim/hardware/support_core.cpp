// SpeedMalloc's support core: see support_core.h.
#include "hardware/support_core.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace annex::sim {

namespace {

constexpr Register kResultRegister = kFirstInteger;  // rax

// Memory that queues overflow to: no program's, and large enough for all that may wait.
constexpr Address kReserved = Address{1} << 47;
constexpr Address kReservedLines = 1 << 16;

}  // namespace

SupportCore::SupportCore(const SupportCoreParameters& parameters, unsigned main_cores, Core& core, MemorySystem& memory)
    : link_(parameters.link),
      reply_when_known_(parameters.reply == "when-known"),
      costs_nothing_(parameters.service == "none"),
      core_(core),
      memory_(memory),
      mallocs_(parameters.queue, main_cores),
      frees_(parameters.queue, main_cores) {}

uint64_t SupportCore::request(Service service, unsigned from, Cycles issued, Call call) {
  statistics_.steps += call.steps();
  coming_.push_back({arrival(issued), {service, from, next_number_, issued, std::move(call)}});
  std::push_heap(coming_.begin(), coming_.end(), Later{});
  return next_number_++;
}

Cycles SupportCore::next_start() const {
  return mallocs_.empty() && frees_.empty() ? kNoTime : std::max(now_, core_.now());
}

Cycles SupportCore::decides_next() const { return std::min(next_arrival(), next_start()); }

void SupportCore::advance(Cycles to) {
  for (;;) {
    const Cycles arrival = next_arrival();
    const Cycles start = next_start();
    if (std::min(arrival, start) > to || std::min(arrival, start) == kNoTime) return;
    if (arrival <= start) {
      take_in();
    } else {
      now_ = start;
      serve(start);
    }
  }
}

std::optional<Cycles> SupportCore::answer(uint64_t number) {
  const auto found = answers_.find(number);
  if (found == answers_.end()) return std::nullopt;
  const Cycles at = found->second;
  answers_.erase(found);
  return at;
}

void SupportCore::take_in() {
  std::pop_heap(coming_.begin(), coming_.end(), Later{});
  const Cycles arrival = coming_.back().arrival;
  Request request = std::move(coming_.back().request);
  coming_.pop_back();
  // After what was decided without it.
  if (arrival < now_) ++statistics_.told_late;
  now_ = std::max(now_, arrival);
  const unsigned from = request.from;
  Queue& queue = queue_of(request.service);
  if (queue.full()) memory_.write_uncached(kReserved + request.number % kReservedLines * 64, now_);
  queue.push(std::move(request), from, arrival);
}

void SupportCore::serve(Cycles at) {
  Queue& queue = mallocs_.empty() ? frees_ : mallocs_;
  const bool more = queue.overflows();
  const Request request = queue.take(at);
  if (more) memory_.read_uncached(kReserved + queue.statistics().taken % kReservedLines * 64, at);
  core_.idle_until(at);
  if (costs_nothing_) {
    statistics_.replayed += request.call.steps();
  } else {
    run(request.call);
  }
  const Cycles end = std::max(at, core_.now());
  ++statistics_.served;
  statistics_.service += end - at;
  if (request.service != Service::kAllocate) return;
  const Cycles known = reply_when_known_ ? std::clamp(core_.ready(kResultRegister), at, end) : end;
  statistics_.reply += known - at;
  answers_[request.number] = known + link_;
  statistics_.asked_to_answered += known + link_ - request.issued;
}

// What ends the call is no return here: the next request's address follows.
void SupportCore::run(const Call& call) {
  size_t left = call.steps();
  call.each([&](const Call::Step& step, std::span<const MemoryAccess> accesses) {
    const Block* block = step.block;
    if (--left == 0 && block->end == BlockEnd::kReturn) {
      Block& without = last_blocks_.try_emplace(block, *block).first->second;
      without.end = BlockEnd::kJump;
      block = &without;
    }
    Call::run(core_, *block, step, accesses);
    ++statistics_.replayed;
  });
}

void SupportCore::describe(nlohmann::json& out) const {
  const auto add = [](nlohmann::json& to, const auto& group) {
    std::remove_cvref_t<decltype(group)>::each(
        group, [&](const char* name, uint64_t value, const char*) { to[name] = value; });
  };
  add(out, statistics_);
  add(out["malloc_queue"], mallocs_.statistics());
  add(out["free_queue"], frees_.statistics());
  out["core"] = core_.index();
}

}  // namespace annex::sim
