// The last level and its directory: see last_level.h.
#include "machine/last_level.h"

#include <algorithm>

namespace annex::sim {

LastLevel::LastLevel(const Machine& machine, Attribution& attribution)
    : transfer_(machine.coherence.transfer),
      invalidate_(machine.coherence.invalidate),
      further_(machine.coherence.further),
      retry_(machine.coherence.retry),
      far_(machine.coherence.far),
      quantum_(machine.quantum),
      first_near_(machine.first_of(kSupportCore)),
      near_cores_(machine.support_core.far + machine.support_core.near > 0 ? machine.support_core.cores : 0),
      further_away_(machine.support_core.far),
      nearer_memory_(machine.support_core.near),
      attribution_(attribution),
      cache_(machine.llc),
      directory_(cache_.slots()),
      prefetcher_(machine.llc),
      interconnect_(machine),
      dram_(machine) {}

void LastLevel::attach(Holder& holder) {
  holders_.push_back(&holder);
  coherence_.emplace_back();
}

// --- Requests ---

LastLevel::Found LastLevel::look_up(const Request& request, Cycles at) {
  const Cycles looked_up = at + cache_.latency;
  if (request.demand()) ++cache_.statistics.accesses[request.requester()][index_of(request.access)];
  const Slot slot = cache_.find(request.line);
  if (slot == kNoSlot) {
    if (request.demand()) ++cache_.statistics.misses[request.requester()][index_of(request.access)];
    const Slot filled = from_memory(request, looked_up);
    return {filled, cache_[filled].ready, Event::kMiss};
  }
  Line& line = cache_[slot];
  cache_.use(slot);
  const Cycles there = Cache::arrival(line, looked_up);
  Event event = Event::kNone;
  if (request.demand()) {
    if (there > looked_up) ++cache_.statistics.late_hits[request.requester()];
    event = prefetcher_.first_use(line, there > looked_up);
  }
  return {slot, there, event};
}

Fill LastLevel::request(unsigned core, const Request& request, Cycles at) {
  const unsigned slice = interconnect_.slice_of(request.line);
  const Cycles way = interconnect_.way(core, slice);
  at = interconnect_.take_up(slice, at + way);
  Found found = look_up(request, at + further(core));
  if (found.event == Event::kMiss) found.there = std::max(at, found.there - nearer(core));
  Fill fill{found.there + way, Level::kDram, State::kInvalid};
  if (found.event != Event::kMiss) {
    fill = from_cores(core, found.slot, request, found.there);
    // What other requests brought, and is still on its way.
    if (fill.level == Level::kLlc && found.there > at + cache_.latency) fill.level = cache_[found.slot].source;
  }
  fill.in_llc = found.slot;
  if (request.demand()) fill.llc = found.event;

  // Who has it now. Code is never owned, since it is read by many and written by none.
  Entry& entry = directory_[found.slot];
  const bool alone = entry.sharers.without(core).empty();
  const bool own = request.store() || (alone && request.access == Access::kLoad);
  entry.sharers.insert(core);
  entry.owner = own ? static_cast<int>(core) : kNobody;
  fill.state = own ? State::kExclusive : State::kShared;
  if (own) entry.busy.extend(at + cache_.latency, fill.ready + way + cache_.latency);
  return fill;
}

// When a request that could be served at `at` is, where the line is busy. The program has run it after what made the
// line busy, and sees what that did: so it waits, though its own time may be a little before the period.
Cycles LastLevel::turn(const BusyPeriod& busy, Cycles at) const {
  Cycles start = busy.start(at);
  if (at < busy.from && busy.from - at < quantum_) start = busy.until;
  if (retry_ == 0 || start == at) return start;
  return at + (start - at + retry_ - 1) / retry_ * retry_;
}

Fill LastLevel::from_cores(unsigned core, Slot slot, const Request& request, Cycles at) {
  Entry& entry = directory_[slot];
  CoherenceStatistics& statistics = coherence_[core];
  const CoreSet others = entry.sharers.without(core);
  const unsigned slice = interconnect_.slice_of(request.line);
  const Cycles back = interconnect_.way(slice, core);
  if (others.empty()) return {at + back, Level::kLlc, State::kInvalid};
  const Cycles start = turn(entry.busy, at);
  statistics.queue_cycles[request.requester()] += start - at;

  const bool owned = entry.owner != kNobody;
  if (!owned && !request.store()) return {start + back, start > at ? Level::kPeer : Level::kLlc, State::kInvalid};
  const Cycles takes = taking(entry, others, slice, core);
  statistics.transfers[request.requester()] += owned;
  if (!request.store()) entry.busy.extend(at, start + takes);  // else it is the requester's until its access is done
  others.each([&](unsigned other) {
    ++coherence_[other].asked;
    Cycles got;
    if (request.store()) {
      got = take_from(other, slot, request.word);
      ++statistics.invalidated[request.requester()];
      statistics.contended += got + quantum_ > at;
    } else {
      const Holder::Answer answer = holders_[other]->share(cache_.line_in(slot));
      if (answer.modified) cache_[slot].state = State::kModified;
      got = answer.got;
    }
    statistics.received += owned && got + quantum_ > at;
    communications_ += got + quantum_ > at;
  });
  return {start + takes, Level::kPeer, State::kInvalid};
}

Cycles LastLevel::taking(const Entry& entry, const CoreSet& others, unsigned slice, unsigned answered) const {
  Cycles ways = 0;  // to the farthest of them, and from there on
  if (interconnect_.active()) {
    others.each([&](unsigned other) {
      ways = std::max(ways, interconnect_.way(slice, other) + interconnect_.way(other, answered));
    });
  }
  return ways + (entry.owner != kNobody ? transfer_ : invalidate_ + (others.count() - 1) * further_);
}

Cycles LastLevel::take_from(unsigned core, Slot slot, uint8_t word) {
  const Holder::Answer answer = holders_[core]->take(cache_.line_in(slot), word);
  if (answer.modified) cache_[slot].state = State::kModified;
  directory_[slot].sharers.erase(core);
  directory_[slot].owner = kNobody;
  return answer.got;
}

void LastLevel::take_from_all(Slot slot, uint8_t word) {
  const CoreSet sharers = directory_[slot].sharers;
  sharers.each([&](unsigned core) { take_from(core, slot, word); });
}

void LastLevel::evicted(unsigned core, Slot slot, bool modified, bool kept) {
  if (modified) cache_[slot].state = State::kModified;
  if (!kept) directory_[slot].sharers.erase(core);
  directory_[slot].owner = kNobody;  // if there was one, it was this core
}

// --- Locked instructions ---

void LastLevel::keep(unsigned core, Address line, Cycles from, Cycles until) {
  const Slot slot = cache_.find(line);
  if (slot == kNoSlot) return;
  const Cycles told = until + interconnect_.way(core, interconnect_.slice_of(line));
  directory_[slot].busy.extend(from, told + cache_.latency);
}

Fill LastLevel::far(unsigned core, const Request& request, Cycles at) {
  const unsigned slice = interconnect_.slice_of(request.line);
  const Cycles way = interconnect_.way(core, slice);
  const Found found = look_up(request, interconnect_.take_up(slice, at + way));
  Entry& entry = directory_[found.slot];
  CoherenceStatistics& statistics = coherence_[core];
  ++statistics.far[request.requester()];
  const Cycles start = turn(entry.busy, found.there);
  statistics.queue_cycles[request.requester()] += start - found.there;
  const CoreSet others = entry.sharers.without(core);
  Cycles takes = far_;
  if (!others.empty()) {
    takes += taking(entry, others, slice, slice);
    statistics.invalidated[request.requester()] += others.count();
    others.each([&](unsigned other) { ++coherence_[other].asked; });
  }
  take_from_all(found.slot, request.word);
  communications_ += entry.last != static_cast<int>(core) && entry.busy.until + quantum_ > found.there;
  entry.last = static_cast<int>(core);
  entry.busy.extend(found.there, start + takes);
  cache_[found.slot].state = State::kModified;
  const Level level = start > found.there || !others.empty() ? Level::kPeer
                      : found.event == Event::kMiss          ? Level::kDram
                                                             : Level::kLlc;
  Fill fill{start + takes + way, level, State::kInvalid};
  if (request.demand()) fill.llc = found.event;
  return fill;
}

// --- Memory ---

Slot LastLevel::from_memory(const Request& request, Cycles at) {
  const Mshrs::Grant grant = cache_.start_miss(at, request.prefetch);
  const Cycles ready = request.whole ? grant.start : dram_.read(request.line, grant.start);
  cache_.mshrs.hold(grant, ready);

  const Slot slot = cache_.victim(request.line, request.origin);
  if (!cache_.empty(slot)) evict(slot, request, grant.start);
  Line& line = cache_.place(slot, request.line);
  line.arrives(at, {.ready = ready, .level = Level::kDram, .state = State::kShared});
  line.state = State::kShared;
  directory_[slot] = {};
  return slot;
}

void LastLevel::evict(Slot slot, const Request& cause, Cycles at) {
  const Address line = cache_.line_in(slot);
  ++cache_.statistics.evictions[cause.requester()];
  directory_[slot].sharers.each([&](unsigned core) { attribution_.evicted(core, line, cause.origin); });
  take_from_all(slot);
  if (cache_[slot].state == State::kModified) {
    ++cache_.statistics.write_backs[cause.requester()];
    dram_.write(line, at);
  }
  cache_.remove(slot);
}

Cycles LastLevel::write_around(Address line, Cycles at) {
  if (const Slot slot = cache_.find(line); slot != kNoSlot) {
    take_from_all(slot);
    directory_[slot] = {};
    cache_.remove(slot);
  }
  return dram_.write(line, at);
}

void LastLevel::prefetch_after(const Request& request, Event event, Cycles at) {
  if (!prefetcher_.active() || event == Event::kNone) return;
  Request ahead = request;
  ahead.prefetch = true;
  const Prefetcher::Lines lines = prefetcher_.observe(request.line, event == Event::kMiss);
  for (size_t i = 0; i < lines.count; ++i) {
    ahead.line = lines.line[i];
    if (cache_.find(ahead.line) != kNoSlot) continue;
    if (!cache_.mshrs.available(at)) {
      ++prefetcher_.statistics.dropped;
      continue;
    }
    ++prefetcher_.statistics.issued;
    cache_[from_memory(ahead, at)].prefetched = true;
  }
}

void LastLevel::clear() {
  cache_.clear();
  std::fill(directory_.begin(), directory_.end(), Entry{});
  prefetcher_.clear();
  interconnect_.clear();
  dram_.clear();
  reset_statistics();
}

void LastLevel::reset_statistics() {
  cache_.statistics = {};
  prefetcher_.statistics = {};
  interconnect_.reset_statistics();
  dram_.statistics = {};
  std::fill(coherence_.begin(), coherence_.end(), CoherenceStatistics{});
}

}  // namespace annex::sim
