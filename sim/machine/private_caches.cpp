// A core's own caches: see private_caches.h.
#include "machine/private_caches.h"

#include <algorithm>

namespace annex::sim {

namespace {

bool prefetches(const CoreKind& kind, const LastLevel& last_level) {
  const auto active = [](const CacheParameters& cache) { return cache.prefetcher != "none"; };
  return active(kind.l1i) || active(kind.l1d) || (kind.has_l2() && active(kind.l2)) || last_level.prefetcher().active();
}

}  // namespace

PrivateCaches::PrivateCaches(const CoreKind& kind, unsigned core, LastLevel& last_level, Attribution& attribution)
    : number(core),
      l1d(kind.l1d),
      l1i(kind.l1i),
      l1d_prefetcher(kind.l1d),
      l1i_prefetcher(kind.l1i),
      l2_prefetcher(kind.l2),
      last_level_(last_level),
      attribution_(attribution),
      prefetching_(prefetches(kind, last_level)) {
  if (!kind.has_l2()) return;
  l2.emplace(kind.l2);
  in_llc_.assign(l2->slots(), kNoSlot);
}

// --- L1 ---

Fill PrivateCaches::access(const Request& request, Cycles at) {
  Cache& l1 = request.access == Access::kFetch ? l1i : l1d;
  const Cycles looked_up = at + l1.latency;
  const Slot slot = l1.find(request.line);
  return slot != kNoSlot ? l1_hit(l1, slot, request, looked_up) : l1_miss(l1, request, looked_up);
}

Fill PrivateCaches::l1_hit(Cache& l1, Slot slot, const Request& request, Cycles at) {
  Line& line = l1[slot];
  l1.use(slot);
  l1.note(slot);
  if (line.user != request.origin) used(line, request.line, request.origin);
  const Event event = prefetcher_of(l1).first_use(line, line.ready > at);
  Fill fill = l1.serve(line, at, Level::kL1, request.requester());
  if (request.store()) {
    if (line.state == State::kShared) {
      fill = from_below(request, fill.ready);
      line.arrives(at, fill);  // a next store waits for the rights, too
    }
    line.state = State::kModified;
  }
  prefetch_after(l1, request, event, fill, at);
  return fill;
}

Fill PrivateCaches::l1_miss(Cache& l1, const Request& request, Cycles at) {
  if (const Fill* merged = promised(request, at)) {
    ++l1.statistics.late_hits[request.requester()];
    return *merged;
  }
  if (l2) l2->prepare(request.line);
  last_level_.prepare(request.line);
  ++l1.statistics.misses[request.requester()][index_of(request.access)];
  const Mshrs::Grant grant = l1.start_miss(at, false);
  const Fill fill = from_below(request, grant.start);
  l1.mshrs.hold(grant, fill.ready);
  place_in_l1(l1, request, fill, at);
  prefetch_after(l1, request, Event::kMiss, fill, at);
  return fill;
}

void PrivateCaches::place_in_l1(Cache& l1, const Request& request, const Fill& fill, Cycles at) {
  const Slot slot = l1.victim(request.line, request.origin);
  if (!l1.empty(slot)) evict_from_l1(l1, slot, request);
  Line& line = l1.place(slot, request.line);
  l1.note(slot);
  line.arrives(at, fill);
  line.state = fill.state;
  if (request.demand()) {
    used(line, request.line, request.origin);
  } else {
    line.user = attribution_.user_of(request.line);
  }
}

void PrivateCaches::evict_from_l1(Cache& l1, Slot slot, const Request& cause) {
  ++l1.statistics.evictions[cause.requester()];
  const Address line = l1.line_in(slot);
  const bool modified = l1[slot].state == State::kModified;
  l1.statistics.write_backs[cause.requester()] += modified;
  if (l2) {
    if (modified) (*l2)[l2->find(line)].state = State::kModified;
    return;
  }
  const Cache& other = &l1 == &l1d ? l1i : l1d;
  const bool kept = other.find(line) != kNoSlot;
  if (kept && &l1 == &l1i) return;  // the L1D's rights stay
  last_level_.evicted(number, last_level_.find(line), modified, kept);
  if (!kept) attribution_.evicted(number, line, cause.origin);
}

// --- Below the L1s ---

Fill PrivateCaches::from_below(const Request& request, Cycles at) {
  if (l2) return from_l2(request, at);
  // To write, or to execute, what the L1D has: rights go up or down there.
  if (const Slot slot = l1d.find(request.line); slot != kNoSlot) {
    if (request.store()) {
      ++last_level_.coherence(number).upgrades[request.requester()];
      Fill fill = last_level_.request(number, request, at);
      fill.state = State::kModified;
      return fill;
    }
    const bool modified = l1d[slot].state == State::kModified;
    l1d[slot].state = State::kShared;
    last_level_.evicted(number, last_level_.find(request.line), modified, true);
  }
  Fill fill = from_last_level(request, at, at);
  if (request.store()) fill.state = State::kModified;
  return fill;
}

Fill PrivateCaches::from_last_level(const Request& request, Cycles at, Cycles looked_up) {
  const Blame blame = attribution_.missed(number, request);
  Fill fill = last_level_.request(number, request, at);
  fill.blame = blame;
  if (request.demand()) attribution_.took(number, blame, fill.ready - looked_up);
  return fill;
}

Fill PrivateCaches::from_l2(const Request& request, Cycles at) {
  const Cycles looked_up = at + l2->latency;
  if (request.demand()) ++l2->statistics.accesses[request.requester()][index_of(request.access)];

  Fill fill{looked_up, Level::kL2, State::kInvalid};
  Slot slot = l2->find(request.line);
  if (slot != kNoSlot) {
    Line& line = (*l2)[slot];
    l2->use(slot);
    fill.ready = Cache::arrival(line, looked_up);
    if (fill.ready > looked_up) {
      if (request.demand()) ++l2->statistics.late_hits[request.requester()];
      fill.level = line.source;
      fill.blame = line.blame;
    }
    if (request.demand()) fill.l2 = l2_prefetcher.first_use(line, line.ready > looked_up);
    if (request.store() && line.state == State::kShared) {
      ++last_level_.coherence(number).upgrades[request.requester()];
      const Event event = fill.l2;
      fill = last_level_.request(number, request, fill.ready);
      fill.l2 = event;
      line.state = fill.state;
      line.arrives(looked_up, fill);
    }
  } else {
    if (request.demand()) ++l2->statistics.misses[request.requester()][index_of(request.access)];
    const Mshrs::Grant grant = l2->start_miss(looked_up, request.prefetch);
    // What evicting the victim will need. (It may be another line by then.)
    if (const Slot place = in_llc_[l2->victim(request.line, request.origin)]; place != kNoSlot)
      last_level_.prepare(place);
    fill = from_last_level(request, grant.start, looked_up);
    fill.l2 = Event::kMiss;
    l2->mshrs.hold(grant, fill.ready);

    slot = l2->victim(request.line, request.origin);
    if (!l2->empty(slot)) evict_from_l2(slot, request);
    Line& line = l2->place(slot, request.line);
    in_llc_[slot] = fill.in_llc;
    line.arrives(looked_up, fill);
    line.state = fill.state;
  }
  // The L2's own state becomes M only when an L1 writes the line back to it.
  fill.state = request.store()                          ? State::kModified
               : request.access == Access::kFetch       ? State::kShared
               : (*l2)[slot].state >= State::kExclusive ? State::kExclusive
                                                        : State::kShared;
  return fill;
}

bool PrivateCaches::take_from_l1s(Address line) {
  bool modified = false;
  for (Cache* l1 : {&l1d, &l1i}) {
    const Slot slot = l1->find(line);
    if (slot == kNoSlot) continue;
    modified = modified || (*l1)[slot].state == State::kModified;
    l1->remove(slot);
    ++l1->statistics.invalidations;
  }
  return modified;
}

void PrivateCaches::evict_from_l2(Slot slot, const Request& cause) {
  const Address line = l2->line_in(slot);
  ++l2->statistics.evictions[cause.requester()];
  const bool modified = take_from_l1s(line) || (*l2)[slot].state == State::kModified;
  l2->statistics.write_backs[cause.requester()] += modified;
  last_level_.evicted(number, in_llc_[slot], modified);
  attribution_.evicted(number, line, cause.origin);
  l2->remove(slot);
}

// --- For the directory ---

Holder::Answer PrivateCaches::take(Address line, uint8_t word) {
  Answer answer{false, 0};
  promise(line, word);
  if (!l2) {
    for (const Cache* l1 : {&l1d, &l1i}) {
      if (const Slot slot = l1->find(line); slot != kNoSlot) answer.got = std::max(answer.got, (*l1)[slot].ready);
    }
    answer.modified = take_from_l1s(line);
    return answer;
  }
  answer.modified = take_from_l1s(line);
  const Slot slot = l2->find(line);
  answer.modified = answer.modified || (*l2)[slot].state == State::kModified;
  answer.got = (*l2)[slot].ready;
  l2->remove(slot);
  ++l2->statistics.invalidations;
  return answer;
}

Holder::Answer PrivateCaches::share(Address line) {
  Answer answer{false, 0};
  const auto share_in = [&](Cache& cache) {
    const Slot slot = cache.find(line);
    if (slot == kNoSlot) return;
    answer.modified = answer.modified || cache[slot].state == State::kModified;
    answer.got = std::max(answer.got, cache[slot].ready);
    cache[slot].state = State::kShared;
  };
  if (l2) share_in(*l2);
  share_in(l1d);
  return answer;
}

// --- Prefetching ---

void PrivateCaches::prefetch_after(Cache& l1, const Request& request, Event l1_event, const Fill& fill, Cycles at) {
  if (!prefetching_ || request.kernel) return;
  Request ahead = request;
  ahead.prefetch = true;
  if (request.store()) ahead.access = Access::kLoad;
  const auto observe = [&](Prefetcher& prefetcher, Event event, const auto& fetch) {
    if (!prefetcher.active() || event == Event::kNone) return;
    const Prefetcher::Lines lines = prefetcher.observe(request.line, event == Event::kMiss);
    for (size_t i = 0; i < lines.count; ++i) {
      ahead.line = lines.line[i];
      fetch();
    }
  };
  // The farthest level first, so that a line which two want is counted as the farther one's, whose request is earlier.
  last_level_.prefetch_after(ahead, fill.llc, at);
  if (l2) observe(l2_prefetcher, fill.l2, [&] { prefetch_into_l2(ahead, at); });
  observe(prefetcher_of(l1), l1_event, [&] { prefetch_into_l1(l1, ahead, at); });
}

// Whether a register is free, in each cache beyond the L1s that has not got the line.
bool PrivateCaches::miss_available(Address line, Cycles at) const {
  if (l2 && l2->find(line) != kNoSlot) return true;
  return (!l2 || l2->mshrs.available(at)) && last_level_.available(at);
}

void PrivateCaches::prefetch_into_l1(Cache& l1, const Request& request, Cycles at) {
  if (l1.find(request.line) != kNoSlot) return;
  Prefetcher& prefetcher = prefetcher_of(l1);
  if (!l1.mshrs.available(at) || !miss_available(request.line, at)) {
    ++prefetcher.statistics.dropped;
    return;
  }
  ++prefetcher.statistics.issued;
  const Mshrs::Grant grant = l1.start_miss(at, true);
  const Fill fill = from_below(request, grant.start);
  l1.mshrs.hold(grant, fill.ready);
  place_in_l1(l1, request, fill, at);
  l1[l1.find(request.line)].prefetched = true;
}

void PrivateCaches::prefetch_into_l2(const Request& request, Cycles at) {
  if (l2->find(request.line) != kNoSlot) return;
  if (!miss_available(request.line, at)) {
    ++l2_prefetcher.statistics.dropped;
    return;
  }
  ++l2_prefetcher.statistics.issued;
  from_l2(request, at);
  (*l2)[l2->find(request.line)].prefetched = true;
}

// --- Inspection ---

State PrivateCaches::state_of(Address line) const {
  State state = State::kInvalid;
  for (const Cache* cache : {&l1d, l2 ? &*l2 : &l1i}) {
    const Slot slot = cache->find(line);
    if (slot != kNoSlot) state = std::max(state, (*cache)[slot].state);
  }
  return state;
}

bool PrivateCaches::contains(Address line) const {
  return l1d.find(line) != kNoSlot || l1i.find(line) != kNoSlot || (l2 && l2->find(line) != kNoSlot);
}

void PrivateCaches::inconsistencies(std::vector<std::string>& problems) const {
  const auto expect = [&](bool holds, const char* what, Address line) {
    if (!holds) problems.push_back(std::string(what) + ", line " + std::to_string(line));
  };
  const auto known = [&](Address line) {
    const Slot below = last_level_.find(line);
    expect(below != kNoSlot, "in a core's caches and not in the last level", line);
    if (below == kNoSlot) return;
    const CoreSet& sharers = last_level_.sharers(below);
    const bool owns = state_of(line) >= State::kExclusive;
    expect(sharers.contains(number), "a core has it and the directory does not know", line);
    expect(owns == (last_level_.owner(below) == static_cast<int>(number)), "rights and the directory's owner differ",
           line);
    expect(!owns || sharers.without(number).empty(), "an owner beside sharers", line);
  };
  for (const Cache* l1 : {&l1d, &l1i}) {
    for (Slot slot = 0; slot < l1->slots(); ++slot) {
      if (l1->empty(slot)) continue;
      const Address line = l1->line_in(slot);
      known(line);
      if (!l2) continue;
      const Slot below = l2->find(line);
      expect(below != kNoSlot, "in an L1 and not in the L2", line);
      if (below == kNoSlot || (*l1)[slot].state < State::kExclusive) continue;
      expect((*l2)[below].state >= State::kExclusive, "L1 has more rights than L2", line);
    }
  }
  for (Slot slot = 0; l2 && slot < l2->slots(); ++slot) {
    if (l2->empty(slot)) continue;
    known(l2->line_in(slot));
    expect(last_level_.find(l2->line_in(slot)) == in_llc_[slot], "an L2 looks for its line elsewhere in the last level",
           l2->line_in(slot));
  }
}

void PrivateCaches::clear() {
  for (Cache* cache : {&l1i, &l1d}) cache->clear();
  if (l2) l2->clear();
  for (Prefetcher* prefetcher : {&l1i_prefetcher, &l1d_prefetcher, &l2_prefetcher}) prefetcher->clear();
  std::fill(in_llc_.begin(), in_llc_.end(), kNoSlot);
  promised_.fill({});
}

void PrivateCaches::reset_statistics() {
  for (Cache* cache : {&l1i, &l1d}) cache->statistics = {};
  if (l2) l2->statistics = {};
  for (Prefetcher* prefetcher : {&l1i_prefetcher, &l1d_prefetcher, &l2_prefetcher}) prefetcher->statistics = {};
}

}  // namespace annex::sim
