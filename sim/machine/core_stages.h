// The stages of the core model that micro-ops go through: dispatch, issue, access to memory, retirement and its
// accounting.
//
// For core.cpp only. Nearly all of the simulator's time goes here and to the caches: so these are inlined, what depends
// on the program's timing is computed without branches where it can be, and other branches almost always go one way.
#pragma once

#include <algorithm>
#include <bit>

#include "machine/core.h"

namespace annex::sim {

inline constexpr std::array<Cause, 5> kCauseOf = {Cause::kL1, Cause::kL2, Cause::kLlc, Cause::kCoherence, Cause::kDram};
static_assert(static_cast<size_t>(Level::kPeer) == 3 && static_cast<size_t>(Level::kDram) + 1 == kCauseOf.size());

// By value, which compilers turn into conditional moves more readily than std::max.
constexpr Cycles later(Cycles a, Cycles b) { return a > b ? a : b; }

template <class Work>
[[gnu::always_inline]] inline auto Core::apart(Pace& pace, Work&& work) {
  pace_ = pace;
  if constexpr (std::is_void_v<decltype(work())>) {
    work();
    pace = pace_;
  } else {
    const auto result = work();
    pace = pace_;
    return result;
  }
}

// Of a dispatch that could have been at `from` and is at `to`: of that, what retirement will notice. What is dispatched
// at `to` retires two cycles later at best; until then, what retired before was not waited for.
inline Core::Delay Core::lateness(const Pace& pace, Cycles from, Cycles to, Cause cause, Blame blame) {
  const Cycles retired = std::min(pace.retired(), to + 2);
  return {std::min(to - from, to + 2 - retired), cause, blame};
}

// Dispatch: when the front end has it and all queues have room. What it came late for is charged when it retires.
template <Core::Queued kQueued>
[[gnu::always_inline]] inline Core::Delay Core::dispatch(Pace& pace, bool fused) {
  Delay late;
  // What is fused takes the slot and the entry of the one before.
  pace.entry -= fused;
  Cycles slot =
      later(pace.dispatch_slot + (fused ? 0 : dispatch_step_), retire_slots_[(pace.entry - rob_) & rob_mask_]);
  Cycles at = slot >> kSlotShift;
  if constexpr (kQueued == Queued::kLoad) {
    if (const Cycles free = loads_.free_at(); free > at) [[unlikely]] {
      at = free;
      slot = at << kSlotShift;
    }
  }
  if constexpr (kQueued == Queued::kStore) {
    if (const Cycles free = stores_.free_at(); free > at) [[unlikely]] {
      const Why& why = store_causes_[(stores_.next - stores_.size) & stores_.mask];
      late = lateness(pace, at, free, why.cause, why.blame);
      at = free;
      slot = at << kSlotShift;
    }
  }
  if (front_until_ > at) [[unlikely]] {
    late = lateness(pace, at, front_until_, front_cause_);
    at = front_until_;
    slot = at << kSlotShift;
  }
  pace.dispatch_slot = slot;
  while ((pace.dispatch ^ at) >= kWordCycles) enter_next_word(pace);
  pace.dispatch = at;
  // What is issued in dispatch's own word has left the scheduler, or as good as.
  while (pace.waiting >= scheduler_) [[unlikely]] {
      enter_next_word(pace);
      pace.dispatch_slot = pace.dispatch << kSlotShift;
    }
  return late;
}

// Dispatch leaves its word of cycles for the start of the next.
[[gnu::always_inline]] inline void Core::enter_next_word(Pace& pace) {
  word_of(pace.dispatch) = {};
  pace.dispatch = (pace.dispatch | (kWordCycles - 1)) + 1;
  pace.waiting -= word_of(pace.dispatch).uops;
}

[[gnu::always_inline]] inline Cycles Core::operands_ready(const Pace& pace, const Uop& uop) const {
  const Cycles first = later(ready_[uop.sources[0]], ready_[uop.sources[1]]);
  const Cycles second = later(ready_[uop.sources[2]], ready_[uop.sources[3]]);
  return later(later(first, second), pace.dispatch + 1);
}

[[gnu::always_inline]] inline void Core::set_destinations(const Uop& uop, Cycles at) {
  ready_[uop.destinations[0]] = at;
  ready_[uop.destinations[1]] = at;
}

inline void Core::raise_floor(Cycles to) {
  floor_ = to;
  for (Cycles& ready : ready_) ready = later(ready, to);
}

// The first cycle from `ready` on with a free port, which it takes.
template <bool kInOrder>
[[gnu::always_inline]] inline Cycles Core::issue(Pace& pace, UopClass kind, Cycles ready) {
  if (kInOrder && ready > pace.dispatch + 1) apart(pace, [&] { advance(ready - 1); });
  // The lowest free bit is both the first cycle and the port to take. From here on `at` is where its word begins.
  const uint64_t ports = ports_[static_cast<size_t>(kind)];
  Word* word = &word_of(ready);
  uint64_t free = word->free & ports & (~uint64_t{0} << (ready * kPorts % 64));
  Cycles at = ready & ~Cycles{kWordCycles - 1};
  while (free == 0) [[unlikely]] {
      if (ports == 0) break;
      at += kWordCycles;
      word = &word_of(at);
      free = word->free & ports;
    }
  if (ports == 0 || at > pace.dispatch + kHorizon / 2) [[unlikely]] {
    at = apart(pace, [&] { return issue_slowly(kind, ready); });
  } else {
    word->free ^= free & -free;
    ++word->uops;
    pace.waiting += (at ^ pace.dispatch) >= kWordCycles;
    at += static_cast<unsigned>(std::countr_zero(free)) / kPorts;
  }
  if (kInOrder && at > pace.dispatch + 1) apart(pace, [&] { advance(at - 1); });
  return at;
}

// Retires it. Cycles beyond those that the width asks for, which are not charged yet.
[[gnu::always_inline]] inline Cycles Core::retire(Pace& pace, bool fused, Cycles done) {
  const Cycles ideal = pace.retire_slot + (fused ? 0 : retire_step_);
  const Cycles slot = later(ideal, done << kSlotShift);
  pace.retire_slot = slot;
  retire_slots_[pace.entry & rob_mask_] = slot;
  ++pace.entry;
  return (slot >> kSlotShift) - (ideal >> kSlotShift);
}

// What older stores that aren't written yet mean for a load: it may guess wrong about them, and then begins again with
// all after it when the store's address is known. One that contains it forwards to it; what a store has only a part of
// comes from the cache, when the store is written there.
[[gnu::noinline]] inline Core::Conflict Core::look_among_stores(const MemoryAccess& access, Cycles at) {
  const Address load = block_ + access.instruction * 61;
  Cycles from = unwritten_.goes_at(load, at);
  waited_for_ = Cause::kBase;
  const UnwrittenStores::Store* store = unwritten_.youngest_to(access, at);
  if (store == nullptr) return {.from = from};
  if (at < store->known) {
    unwritten_.beware(load);
    if (from == at) {
      ++counts_->order_violations;
      from = store->known + mispredict_;
      waited_for_ = Cause::kBranch;
      hold_front_end(from, Cause::kBranch);
    }
  }
  if (from >= store->written) return {.from = from};
  if (!memory_.last_writer(index_, access.address)) {
    // Another core has written it since: what the program gets is that one's value, or may be.
    if (from == at) waited_for_ = Cause::kCoherence;
    return {.from = store->written};
  }
  if (forwards_any_ || store->contains(access)) {
    ++counts_->forwarded;
    return {.from = from, .data = store->data};
  }
  ++counts_->blocked;
  if (from == at) waited_for_ = Cause::kL1;
  return {.from = store->written};
}

// An access to memory, which may cross into another line: then the slower of the two counts.
template <bool kStore>
[[gnu::always_inline]] inline Core::Answer Core::ask(const MemoryAccess& access, Cycles at) {
  const Reply reply =
      kStore ? memory_.store(index_, access.address, at, origin_) : memory_.load(index_, access.address, at, origin_);
  const bool crosses = line_of(access.address) != line_of(access.address + access.bytes - (access.bytes != 0));
  if ((reply.translation | reply.fault) != 0 || crosses) [[unlikely]]
    return ask_more<kStore>(access, at, reply);
  return {.done = reply.ready,
          .rest = reply.ready - at,
          .cause = kCauseOf[static_cast<size_t>(reply.level)],
          .blame = reply.blame};
}

inline Core::Answer Core::answer_of(const Reply& reply, Cycles at) {
  const Cycles rest = reply.ready - at - reply.translation - reply.fault;
  return {reply.ready, reply.fault, reply.translation, rest, kCauseOf[static_cast<size_t>(reply.level)], reply.blame};
}

template <bool kStore>
[[gnu::noinline]] Core::Answer Core::ask_more(const MemoryAccess& access, Cycles at, const Reply& first) {
  Answer answer = answer_of(first, at);
  const Address last = access.address + access.bytes - (access.bytes != 0);
  for (Address line = line_of(access.address) + 1; line <= line_of(last); ++line) {
    const Address address = line << kLineShift;
    const Answer more = answer_of(
        kStore ? memory_.store(index_, address, at, origin_) : memory_.load(index_, address, at, origin_), at);
    if (more.done > answer.done) answer = more;
  }
  return answer;
}

// What is charged to nothing else is the base's: statistics() sees to that.
inline void Core::charge(Cause cause, Cycles cycles, Blame blame) {
  counts_->cycles[static_cast<size_t>(cause)] += cycles;
  if (blame != Blame::kNone) [[unlikely]]
    counts_->miss_stalls[blame] += cycles;
}

[[gnu::always_inline]] inline void Core::charge(Cycles held, Delay late, Cause cause) {
  if (late.cycles != 0) [[unlikely]] {
    const Cycles first = std::min(held, late.cycles);
    charge(late.cause, first, late.blame);
    held -= first;
  }
  if (cause != Cause::kBase) charge(cause, held);
}

[[gnu::always_inline]] inline void Core::charge(Cycles held, Delay late, const Answer& answer) {
  if ((late.cycles | answer.fault | answer.translation) != 0) [[unlikely]] {
    const auto take = [&](Cycles most, Cause cause, Blame blame) {
      const Cycles part = std::min(held, most);
      charge(cause, part, blame);
      held -= part;
    };
    take(late.cycles, late.cause, late.blame);
    take(answer.fault, Cause::kPageFault, Blame::kNone);
    take(answer.translation, Cause::kTlb, Blame::kNone);
  }
  charge(answer.cause, held < answer.rest ? held : answer.rest, answer.blame);
}

}  // namespace annex::sim
