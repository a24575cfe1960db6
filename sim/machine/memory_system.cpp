#include "machine/memory_system.h"

#include <algorithm>

namespace annex::sim {

MemorySystem::Side::Side(const Machine& machine, unsigned core)
    : number(core),
      l1d(machine.l1d),
      dtlb(machine.dtlb),
      l1i(machine.l1i),
      itlb(machine.itlb),
      l2(machine.l2),
      stlb(machine.stlb),
      l1d_prefetcher(machine.l1d.prefetcher),
      l1i_prefetcher(machine.l1i.prefetcher),
      l2_prefetcher(machine.l2.prefetcher),
      in_llc(l2.slots(), kNoSlot) {}

MemorySystem::MemorySystem(const Machine& machine)
    : transfer_(machine.coherence.transfer),
      invalidate_(machine.coherence.invalidate),
      walk_(machine.pages.walk),
      quantum_(machine.quantum),
      llc_(machine.llc),
      directory_(llc_.slots()),
      llc_prefetcher_(machine.llc.prefetcher),
      dram_(machine),
      pages_(machine) {
  for (const CacheParameters* cache : {&machine.l1i, &machine.l1d, &machine.l2, &machine.llc}) {
    prefetching_ = prefetching_ || cache->prefetcher != "none";
  }
  const Cycles small = machine.from_us(machine.pages.fault_us);
  fault_cycles_ = {0, small, small, machine.from_us(machine.pages.huge_fault_us)};
  sides_.reserve(machine.cores);
  for (unsigned core = 0; core < machine.cores; ++core) sides_.emplace_back(machine, core);
}

// --- Translation ---

MemorySystem::Translation MemorySystem::translate(Side& side, Tlb& tlb, Address address, Cycles at, Origin origin) {
  if (tlb.search(address) != Tlb::Found::kNo) return {tlb.latency, 0};
  ++tlb.statistics.misses[index_of(origin)];
  Translation translation{Cycles{tlb.latency} + side.stlb.latency, 0};
  const Tlb::Found found = side.stlb.search(address);
  bool huge = found == Tlb::Found::kHuge;
  if (found == Tlb::Found::kNo) {
    ++side.stlb.statistics.misses[index_of(origin)];
    translation.cycles += walk_;
    const Pages::Touched touched = pages_.touch(address, at + translation.cycles, origin);
    translation.fault = fault_cycles_[static_cast<size_t>(touched.fault)];
    huge = touched.huge;
    side.stlb.insert(address, huge);
  }
  tlb.insert(address, huge);
  return translation;
}

void MemorySystem::shoot_down(Address from, Address to) {
  for (Side& side : sides_) {
    side.itlb.shoot_down(from, to);
    side.dtlb.shoot_down(from, to);
    side.stlb.shoot_down(from, to);
  }
}

// --- L1 ---

Reply MemorySystem::access_slowly(Side& side, Address address, Access kind, Cycles at, Origin origin) {
  const Translation translation = translate(side, kind == Access::kFetch ? side.itlb : side.dtlb, address, at, origin);
  return access_slowly(side, {line_of(address), kind, origin}, at, translation);
}

Reply MemorySystem::access_slowly(Side& side, const Request& request, Cycles at, Translation translation) {
  Cache& l1 = request.access == Access::kFetch ? side.l1i : side.l1d;
  const Cycles looked_up = at + translation.cycles + translation.fault + l1.latency;
  const Slot slot = l1.find(request.line);
  const Fill fill = slot != kNoSlot ? hit(side, l1, slot, request, looked_up) : miss(side, l1, request, looked_up);
  return {fill.ready, fill.level, translation.cycles, translation.fault};
}

MemorySystem::Fill MemorySystem::hit(Side& side, Cache& l1, Slot slot, const Request& request, Cycles at) {
  Line& line = l1[slot];
  l1.use(slot);
  l1.note(slot);
  line.toucher = request.origin;
  const Event event = l1.first_use(line) ? Event::kFirstUse : Event::kNone;
  const Cache::Served served = l1.serve(line, at, Level::kL1, request.origin);
  Fill fill{served.ready, served.level, line.state};
  if (request.access == Access::kStore) {
    if (line.state == State::kShared) {
      fill = from_l2(side, request, fill.ready);
      line.arrives(at, fill.ready, fill.level);  // a next store waits for the rights, too
    }
    line.state = State::kModified;
  }
  prefetch_after(side, l1, request, event, fill, at);
  return fill;
}

MemorySystem::Fill MemorySystem::miss(Side& side, Cache& l1, const Request& request, Cycles at) {
  side.l2.prepare(request.line);
  llc_.prepare(request.line);
  ++l1.statistics.misses[index_of(request.origin)][index_of(request.access)];
  const Mshrs::Grant grant = l1.start_miss(at, false);
  const Fill fill = from_l2(side, request, grant.start);
  l1.mshrs.hold(grant, fill.ready);
  place_in_l1(side, l1, request, fill, at);
  prefetch_after(side, l1, request, Event::kMiss, fill, at);
  return fill;
}

void MemorySystem::place_in_l1(Side& side, Cache& l1, const Request& request, const Fill& fill, Cycles at) {
  const Slot slot = l1.victim(request.line);
  if (!l1.empty(slot)) {
    ++l1.statistics.evictions[index_of(request.origin)];
    if (&l1 == &side.l1d) {
      Line& below = side.l2[side.l2.find(l1.line_in(slot))];
      below.toucher = l1[slot].toucher;
      if (l1[slot].state == State::kModified) {
        below.state = State::kModified;
        ++l1.statistics.write_backs[index_of(request.origin)];
      }
    }
  }
  Line& line = l1.place(slot, request.line);
  l1.note(slot);
  line.arrives(at, fill.ready, fill.level);
  line.state = fill.state;
  line.toucher = toucher_of(request, fill.touched);
}

// --- L2 ---

MemorySystem::Fill MemorySystem::from_l2(Side& side, const Request& request, Cycles at) {
  Cache& l2 = side.l2;
  const bool demand = !request.prefetch;
  const bool store = request.access == Access::kStore;
  const size_t origin = index_of(request.origin);
  const Cycles looked_up = at + l2.latency;
  if (demand) ++l2.statistics.accesses[origin][index_of(request.access)];

  Fill fill{looked_up, Level::kL2, State::kInvalid};
  Slot slot = l2.find(request.line);
  if (slot != kNoSlot) {
    Line& line = l2[slot];
    l2.use(slot);
    fill.ready = Cache::arrival(line, looked_up);
    fill.touched = line.toucher == Origin::kAllocator;
    if (fill.ready > looked_up) {
      if (demand) ++l2.statistics.late_hits[origin];
      fill.level = line.source;
    }
    if (demand && l2.first_use(line)) fill.l2 = Event::kFirstUse;
    if (store && line.state == State::kShared) {
      ++side.coherence.upgrades[origin];
      fill = from_llc(side, request, fill.ready);
      line.state = fill.state;
      line.arrives(looked_up, fill.ready, fill.level);
    }
  } else {
    if (demand) ++l2.statistics.misses[origin][index_of(request.access)];
    const Mshrs::Grant grant = l2.start_miss(looked_up, request.prefetch);
    // What evicting the victim will need. (It may be another line by then.)
    if (const Slot place = side.in_llc[l2.victim(request.line)]; place != kNoSlot) prepare(place);
    fill = from_llc(side, request, grant.start);
    fill.l2 = Event::kMiss;
    l2.mshrs.hold(grant, fill.ready);
    count_share(side, request, fill.touched, fill.ready - looked_up);

    slot = l2.victim(request.line);
    if (!l2.empty(slot)) evict_from_l2(side, slot, request.origin);
    Line& line = l2.place(slot, request.line);
    side.in_llc[slot] = fill.in_llc;
    line.arrives(looked_up, fill.ready, fill.level);
    line.state = fill.state;
  }
  Line& line = l2[slot];
  line.toucher = toucher_of(request, fill.touched);
  // The L2's own state becomes M only when an L1 writes the line back to it.
  fill.state = store                              ? State::kModified
               : request.access == Access::kFetch ? State::kShared
               : line.state >= State::kExclusive  ? State::kExclusive
                                                  : State::kShared;
  return fill;
}

void MemorySystem::count_share(Side& side, const Request& request, bool touched, Cycles beyond) {
  const bool evicted = side.evicted_by_allocator.erase(request.line);  // as it comes back now
  if (request.prefetch) return;
  const auto part = request.origin == Origin::kAllocator ? &AllocatorShare::inside
                    : evicted && touched                 ? &AllocatorShare::evicted_and_touched
                    : evicted                            ? &AllocatorShare::evicted
                    : touched                            ? &AllocatorShare::touched
                                                         : &AllocatorShare::other;
  ++(side.share_misses.*part);
  side.share_cycles.*part += beyond;
}

void MemorySystem::take_from_l1s(Side& side, Slot l2_slot) {
  const Address line = side.l2.line_in(l2_slot);
  Line& below = side.l2[l2_slot];
  if (const Slot slot = side.l1d.find(line); slot != kNoSlot) {
    below.toucher = side.l1d[slot].toucher;
    if (side.l1d[slot].state == State::kModified) below.state = State::kModified;
    side.l1d.remove(slot);
    ++side.l1d.statistics.invalidations;
  }
  if (const Slot slot = side.l1i.find(line); slot != kNoSlot) {
    side.l1i.remove(slot);
    ++side.l1i.statistics.invalidations;
  }
}

void MemorySystem::evict_from_l2(Side& side, Slot slot, Origin cause) {
  const Address address = side.l2.line_in(slot);
  ++side.l2.statistics.evictions[index_of(cause)];
  take_from_l1s(side, slot);
  const Line& line = side.l2[slot];

  const Slot llc_slot = side.in_llc[slot];
  Line& below = llc_[llc_slot];
  below.toucher = line.toucher;
  if (line.state == State::kModified) {
    below.state = State::kModified;
    ++side.l2.statistics.write_backs[index_of(cause)];
  }
  Entry& entry = directory_[llc_slot];
  entry.sharers &= ~bit_of(side.number);
  entry.owner = kNobody;  // if there was one, it was this core
  if (cause == Origin::kAllocator) side.evicted_by_allocator.insert(address);
  side.l2.remove(slot);
}

// --- Prefetching ---

void MemorySystem::prefetch_after(Side& side, Cache& l1, const Request& request, Event l1_event, const Fill& fill,
                                  Cycles at) {
  if (!prefetching_) return;
  Request ahead = request;
  ahead.prefetch = true;
  if (request.access == Access::kStore) ahead.access = Access::kLoad;
  // The farthest level first, so that a line which two want is counted as the farther one's, whose request is earlier.
  const auto observe = [&](Prefetcher& prefetcher, Event event, const auto& fetch) {
    if (!prefetcher.active() || event == Event::kNone) return;
    const Prefetcher::Lines lines = prefetcher.observe(request.line, event == Event::kMiss);
    for (size_t i = 0; i < lines.count; ++i) {
      ahead.line = lines.line[i];
      fetch();
    }
  };
  observe(llc_prefetcher_, fill.llc, [&] { prefetch_into_llc(ahead, at); });
  observe(side.l2_prefetcher, fill.l2, [&] { prefetch_into_l2(side, ahead, at); });
  observe(&l1 == &side.l1d ? side.l1d_prefetcher : side.l1i_prefetcher, l1_event,
          [&] { prefetch_into_l1(side, l1, ahead, at); });
}

void MemorySystem::prefetch_into_l1(Side& side, Cache& l1, const Request& request, Cycles at) {
  if (l1.find(request.line) != kNoSlot) return;
  const bool far = side.l2.find(request.line) == kNoSlot;
  if (!l1.mshrs.available(at) || (far && !(side.l2.mshrs.available(at) && llc_.mshrs.available(at)))) {
    ++l1.statistics.dropped_prefetches;
    return;
  }
  ++l1.statistics.prefetches;
  const Mshrs::Grant grant = l1.start_miss(at, true);
  const Fill fill = from_l2(side, request, grant.start);
  l1.mshrs.hold(grant, fill.ready);
  place_in_l1(side, l1, request, fill, at);
  l1[l1.find(request.line)].prefetched = true;
}

void MemorySystem::prefetch_into_l2(Side& side, const Request& request, Cycles at) {
  if (side.l2.find(request.line) != kNoSlot) return;
  if (!side.l2.mshrs.available(at) || !llc_.mshrs.available(at)) {
    ++side.l2.statistics.dropped_prefetches;
    return;
  }
  ++side.l2.statistics.prefetches;
  from_l2(side, request, at);
  side.l2[side.l2.find(request.line)].prefetched = true;
}

void MemorySystem::prefetch_into_llc(const Request& request, Cycles at) {
  if (llc_.find(request.line) != kNoSlot) return;
  if (!llc_.mshrs.available(at)) {
    ++llc_.statistics.dropped_prefetches;
    return;
  }
  ++llc_.statistics.prefetches;
  llc_[from_memory(request, at)].prefetched = true;
}

// --- Inspection ---

State MemorySystem::state_of(unsigned core, Address address) const {
  State state = State::kInvalid;
  for (const Cache* cache : {&sides_[core].l1d, &sides_[core].l2}) {
    const Slot slot = cache->find(line_of(address));
    if (slot != kNoSlot) state = std::max(state, (*cache)[slot].state);
  }
  return state;
}

bool MemorySystem::cached(unsigned core, Address address) const {
  const Side& side = sides_[core];
  const Address line = line_of(address);
  return side.l1d.find(line) != kNoSlot || side.l1i.find(line) != kNoSlot || side.l2.find(line) != kNoSlot;
}

void MemorySystem::reset() {
  for (Side& side : sides_) {
    for (Cache* cache : {&side.l1i, &side.l1d, &side.l2}) cache->clear();
    for (Tlb* tlb : {&side.itlb, &side.dtlb, &side.stlb}) tlb->clear();
    for (Prefetcher* prefetcher : {&side.l1i_prefetcher, &side.l1d_prefetcher, &side.l2_prefetcher})
      prefetcher->clear();
    side.evicted_by_allocator.clear();
  }
  llc_.clear();
  llc_prefetcher_.clear();
  std::fill(directory_.begin(), directory_.end(), Entry{});
  dram_.clear();
  touched_by_allocator_.clear();
  reset_statistics(0);
}

void MemorySystem::reset_statistics(Cycles at) {
  for (Side& side : sides_) {
    for (Cache* cache : {&side.l1i, &side.l1d, &side.l2}) cache->statistics = {};
    for (Tlb* tlb : {&side.itlb, &side.dtlb, &side.stlb}) tlb->statistics = {};
    side.coherence = {};
    side.share_misses = {};
    side.share_cycles = {};
  }
  llc_.statistics = {};
  dram_.statistics = {};
  pages_.reset_statistics(at);
}

std::vector<std::string> MemorySystem::inconsistencies() const {
  std::vector<std::string> problems;
  const auto expect = [&](bool holds, const char* what, Address line) {
    if (!holds) problems.push_back(std::string(what) + ", line " + std::to_string(line));
  };
  for (const Side& side : sides_) {
    for (const Cache* l1 : {&side.l1d, &side.l1i}) {
      for (Slot slot = 0; slot < l1->slots(); ++slot) {
        if (l1->empty(slot)) continue;
        const Slot below = side.l2.find(l1->line_in(slot));
        expect(below != kNoSlot, "in an L1 and not in the L2", l1->line_in(slot));
        if (below == kNoSlot || (*l1)[slot].state < State::kExclusive) continue;
        expect(side.l2[below].state >= State::kExclusive, "L1 has more rights than L2", l1->line_in(slot));
      }
    }
    for (Slot slot = 0; slot < side.l2.slots(); ++slot) {
      if (side.l2.empty(slot)) continue;
      const Address line = side.l2.line_in(slot);
      const Slot below = llc_.find(line);
      expect(below != kNoSlot, "in an L2 and not in the last level", line);
      if (below == kNoSlot) continue;
      expect(below == side.in_llc[slot], "an L2 looks for its line elsewhere in the last level", line);
      const Entry& entry = directory_[below];
      const bool owns = side.l2[slot].state >= State::kExclusive;
      expect((entry.sharers & bit_of(side.number)) != 0, "a core has it and the directory does not know", line);
      expect(owns == (entry.owner == static_cast<int>(side.number)), "rights and the directory's owner differ", line);
      expect(!owns || entry.sharers == bit_of(side.number), "an owner beside sharers", line);
    }
  }
  for (Slot slot = 0; slot < llc_.slots(); ++slot) {
    if (llc_.empty(slot)) continue;
    const Address line = llc_.line_in(slot);
    for (const Side& side : sides_) {
      if ((directory_[slot].sharers & bit_of(side.number)) == 0) continue;
      expect(side.l2.find(line) != kNoSlot, "the directory names a core without it", line);
    }
  }
  return problems;
}

}  // namespace annex::sim
