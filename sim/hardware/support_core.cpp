// A core that runs the allocator's calls: see support_core.h.
#include "hardware/support_core.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "hardware/shared_memory.h"
#include "hardware/signals.h"

namespace annex::sim {

namespace {

std::unique_ptr<Channel> channel_of(const SupportCoreParameters& parameters, Cluster cluster, MemorySystem& memory) {
  if (parameters.requests == "memory") return std::make_unique<SharedMemory>(parameters, cluster);
  return std::make_unique<Signals>(parameters, cluster, memory);
}

}  // namespace

SupportCore::SupportCore(const SupportCoreParameters& parameters, Cluster cluster, Core& core, MemorySystem& memory)
    : reply_when_known_(parameters.reply == "when-known"),
      costs_nothing_(parameters.service == "none"),
      core_(core),
      channel_(channel_of(parameters, cluster, memory)) {}

uint64_t SupportCore::request(Service service, unsigned from, Channel::Asked asked, Call call) {
  statistics_.steps += call.steps();
  if (service == Service::kAllocate) statistics_.asking += asked.arrival - asked.issued;
  coming_.push_back({asked.arrival, {service, from, next_number_, asked.issued, std::move(call)}});
  std::push_heap(coming_.begin(), coming_.end(), Later{});
  return next_number_++;
}

uint64_t SupportCore::ask(Core& main, Service service, Address entry, Call call) {
  // Others have come this far; the request may be issued later.
  const Cycles all_told = main.resumes() + least_delay();
  const Channel::Asked asked = channel_->ask(main, service, entry);
  const uint64_t number = request(service, main.index(), asked, std::move(call));
  advance(all_told);
  return number;
}

Cycles SupportCore::next_start() const {
  const Cycles start = channel_->next_start(core_.now());
  return start == kNoTime ? kNoTime : std::max(now_, start);
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
  CallRequest request = std::move(coming_.back().request);
  coming_.pop_back();
  // After what was decided without it.
  if (arrival < now_) ++statistics_.told_late;
  now_ = std::max(now_, arrival);
  channel_->arrive(std::move(request), arrival);
}

void SupportCore::serve(Cycles at) {
  const CallRequest request = channel_->take(core_.now(), at);
  core_.idle_until(at);
  channel_->begin(core_, request);
  const Cycles begun = std::max(at, core_.now());
  if (costs_nothing_) {
    statistics_.replayed += request.call.steps();
  } else {
    run(request.call);
  }
  const Cycles end = std::max(begun, core_.now());
  const bool answers = request.service == Service::kAllocate;
  Cycles known = end;
  if (answers && reply_when_known_ && !costs_nothing_) known = std::clamp(core_.ready(kRax), begun, end);
  ++statistics_.served;
  statistics_.service += end - at;
  if (!answers) return;
  const Cycles had = channel_->answer(core_, request, known);
  statistics_.reply += known - at;
  statistics_.answering += had - known;
  statistics_.asked_to_answered += had - request.issued;
  answers_[request.number] = had;
}

// What ends the call is no return here: the next request's address follows.
void SupportCore::run(const Call& call) {
  size_t left = call.blocks();
  statistics_.replayed += call.run_each(core_, [&](const Call::Step& step) {
    const Block* block = step.block;
    if (--left == 0 && block->end == BlockEnd::kReturn) {
      Block& without = last_blocks_.try_emplace(block, *block).first->second;
      without.end = BlockEnd::kJump;
      block = &without;
    }
    return block;
  });
}

void SupportCore::describe(nlohmann::json& out) const {
  const auto add = [](nlohmann::json& to, const auto& group) {
    std::remove_cvref_t<decltype(group)>::each(
        group, [&](const char* name, uint64_t value, const char*) { to[name] = value; });
  };
  add(out, statistics_);
  add(out["malloc_queue"], channel_->mallocs());
  add(out["free_queue"], channel_->frees());
  out["core"] = core_.index();
}

}  // namespace annex::sim
