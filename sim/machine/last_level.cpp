// The shared part of MemorySystem: the last-level cache, its directory, and what they ask of cores and of memory.
#include <bit>

#include "machine/memory_system.h"

namespace annex::sim {

namespace {

// visit(core) for each bit, from the lowest.
template <class Visit>
void each_core(uint64_t cores, Visit&& visit) {
  for (; cores != 0; cores &= cores - 1) visit(static_cast<unsigned>(std::countr_zero(cores)));
}

}  // namespace

MemorySystem::Fill MemorySystem::from_llc(Side& side, const Request& request, Cycles at) {
  const bool demand = !request.prefetch;
  const size_t origin = index_of(request.origin);
  const Cycles looked_up = at + llc_.latency;
  if (demand) ++llc_.statistics.accesses[origin][index_of(request.access)];

  Fill fill{looked_up, Level::kLlc, State::kInvalid};
  Event event = Event::kNone;
  Slot slot = llc_.find(request.line);
  if (slot != kNoSlot) {
    Line& line = llc_[slot];
    llc_.use(slot);
    const Cycles there = Cache::arrival(line, looked_up);
    if (demand && there > looked_up) ++llc_.statistics.late_hits[origin];
    if (demand && llc_.first_use(line)) event = Event::kFirstUse;
    fill = from_directory(side, slot, request, there);
    if (there > looked_up && fill.level == Level::kLlc) fill.level = line.source;
  } else {
    if (demand) ++llc_.statistics.misses[origin][index_of(request.access)];
    slot = from_memory(request, looked_up);
    fill.ready = llc_[slot].ready;
    fill.level = Level::kDram;
    event = Event::kMiss;
  }
  fill.in_llc = slot;
  if (demand) fill.llc = event;

  Line& line = llc_[slot];
  fill.touched = line.toucher == Origin::kAllocator;
  if (demand) line.toucher = request.origin;

  // Who has it now. Code is never owned, since it is read by many and written by none.
  Entry& entry = directory_[slot];
  const bool alone = (entry.sharers & ~bit_of(side.number)) == 0;
  const bool own = request.access == Access::kStore || (alone && request.access == Access::kLoad);
  entry.sharers |= bit_of(side.number);
  entry.owner = own ? static_cast<int>(side.number) : kNobody;
  fill.state = own ? State::kExclusive : State::kShared;
  return fill;
}

MemorySystem::Fill MemorySystem::from_directory(Side& side, Slot slot, const Request& request, Cycles at) {
  Entry& entry = directory_[slot];
  const bool store = request.access == Access::kStore;
  const size_t origin = index_of(request.origin);
  const uint64_t others = entry.sharers & ~bit_of(side.number);
  const Cycles start = entry.busy.start(at);
  side.coherence.queue_cycles[origin] += start - at;

  Cycles takes = 0;
  if (entry.owner != kNobody && others != 0) {
    takes = transfer_;
    ++side.coherence.transfers[origin];
  } else if (store && others != 0) {
    takes = invalidate_;
  } else {
    return {start, start > at ? Level::kPeer : Level::kLlc, State::kInvalid};
  }
  entry.busy.occupy(at, takes);
  each_core(others, [&](unsigned other) {
    ++sides_[other].coherence.asked;
    if (store) {
      const Cycles got = take_from(sides_[other], slot);
      ++side.coherence.invalidated[origin];
      side.coherence.contended += got + quantum_ > at;
    } else {
      downgrade(sides_[other], slot);
    }
  });
  return {start + takes, Level::kPeer, State::kInvalid};
}

Cycles MemorySystem::take_from(Side& side, Slot llc_slot) {
  const Slot slot = side.l2.find(llc_.line_in(llc_slot));
  take_from_l1s(side, slot);
  llc_[llc_slot].toucher = side.l2[slot].toucher;
  if (side.l2[slot].state == State::kModified) llc_[llc_slot].state = State::kModified;
  const Cycles got = side.l2[slot].ready;
  side.l2.remove(slot);
  ++side.l2.statistics.invalidations;
  directory_[llc_slot].sharers &= ~bit_of(side.number);
  directory_[llc_slot].owner = kNobody;
  return got;
}

void MemorySystem::downgrade(Side& side, Slot llc_slot) {
  Line& below = llc_[llc_slot];
  for (Cache* cache : {&side.l2, &side.l1d}) {
    const Slot slot = cache->find(llc_.line_in(llc_slot));
    if (slot == kNoSlot) continue;
    Line& line = (*cache)[slot];
    if (line.state == State::kModified) below.state = State::kModified;
    line.state = State::kShared;
    below.toucher = line.toucher;  // in the end the L1D's, if it has the line
  }
}

Slot MemorySystem::from_memory(const Request& request, Cycles at) {
  const Mshrs::Grant grant = llc_.start_miss(at, request.prefetch);
  const Cycles ready = dram_.read(request.line, grant.start);
  llc_.mshrs.hold(grant, ready);

  const Slot slot = llc_.victim(request.line);
  if (!llc_.empty(slot)) evict_from_llc(slot, request.origin, grant.start);
  Line& line = llc_.place(slot, request.line);
  line.arrives(at, ready, Level::kDram);
  line.state = State::kShared;
  line.toucher = touched_by_allocator_.erase(request.line) ? Origin::kAllocator : Origin::kProgram;
  directory_[slot] = {};
  return slot;
}

void MemorySystem::evict_from_llc(Slot slot, Origin cause, Cycles at) {
  const Address address = llc_.line_in(slot);
  ++llc_.statistics.evictions[index_of(cause)];
  each_core(directory_[slot].sharers, [&](unsigned core) {
    take_from(sides_[core], slot);
    if (cause == Origin::kAllocator) sides_[core].evicted_by_allocator.insert(address);
  });
  if (llc_[slot].state == State::kModified) {
    ++llc_.statistics.write_backs[index_of(cause)];
    dram_.write(address, at);
  }
  if (llc_[slot].toucher == Origin::kAllocator) touched_by_allocator_.insert(address);
  llc_.remove(slot);
}

}  // namespace annex::sim
