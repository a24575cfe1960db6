// The memory side as a core sees it: see memory_system.h.
#include "machine/memory_system.h"

#include <algorithm>

namespace annex::sim {

MemorySystem::MemorySystem(const Machine& machine)
    : walk_(machine.pages.walk),
      clearing_(machine.pages.clearing == "none"       ? Clearing::kNone
                : machine.pages.clearing == "allocate" ? Clearing::kAllocate
                : machine.pages.clearing == "fetch"    ? Clearing::kFetch
                                                       : Clearing::kNonTemporal),
      clear_line_(machine.pages.clear_line),
      far_atomics_(machine.coherence.atomics == "far"),
      scattered_(machine.pages.frames == "scattered"),
      attribution_(machine.all_cores()),
      last_level_(machine, attribution_),
      pages_(machine) {
  fault_cycles_ = {0, machine.from_us(machine.pages.fault_us), machine.from_us(machine.pages.file_fault_us),
                   machine.from_us(machine.pages.huge_fault_us)};
  for (unsigned core = 0; core < machine.all_cores(); ++core) {
    sides_.push_back(std::make_unique<Side>(machine.kind_of(core), core, last_level_, attribution_));
    sides_.back()->late = core >= machine.thread_cores();
    last_level_.attach(sides_.back()->caches);
  }
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
    if (!side.walker.reads()) translation.cycles += walk_;
    const Pages::Touched touched =
        side.late ? pages_.touch_late(address) : pages_.touch(address, at + translation.cycles, origin);
    huge = touched.huge;
    if (side.walker.reads()) translation.cycles += walk_tables(side, address, huge, at + translation.cycles, origin);
    if (touched.fault != Fault::kNone) {
      const Cycles takes = fault(side, address, touched.fault, at + translation.cycles, origin);
      // At the lock of the memory map; nearly always at once.
      translation.fault = pages_.lock.fault(at, translation.cycles + takes) - at + takes;
    }
    side.stlb.insert(address, huge);
  }
  tlb.insert(address, huge);
  return translation;
}

Cycles MemorySystem::walk_tables(Side& side, Address address, bool huge, Cycles at, Origin origin) {
  const auto read = [&](Address entry, Cycles from) {
    const Request request{.line = frame_line(entry), .access = Access::kLoad, .origin = origin, .kernel = true};
    ++side.caches.l1d.statistics.accesses[kKernel][index_of(Access::kLoad)];
    return side.caches.access(request, from).ready;
  };
  return side.walker.walk(
             address, huge, at, [&](Address page) { return frame_of(page); }, read) -
         at;
}

Cycles MemorySystem::fault(Side& side, Address address, Fault fault, Cycles at, Origin origin) {
  const Cycles own = fault_cycles_[static_cast<size_t>(fault)];
  if (fault == Fault::kFile) return own;
  return own + clear_page(side, address, fault == Fault::kHuge, at + own, origin);
}

Cycles MemorySystem::clear_page(Side& side, Address address, bool huge, Cycles at, Origin origin) {
  if (clearing_ == Clearing::kNone) return 0;
  constexpr Address kLines = Address{1} << (kPageShift - kLineShift);
  Cycles next = at;
  Cycles done = at;
  const auto clear = [&](Address page) {
    const Address first = frame_of(page) * kLines;
    for (Address line = first; line < first + kLines; ++line, next += clear_line_) {
      if (clearing_ == Clearing::kNonTemporal) {
        next = std::max(next, last_level_.write_around(line, next));
        done = next;
        continue;
      }
      const Request request{.line = line,
                            .access = Access::kStore,
                            .origin = origin,
                            .kernel = true,
                            .whole = clearing_ == Clearing::kAllocate};
      ++side.caches.l1d.statistics.accesses[kKernel][index_of(Access::kStore)];
      done = std::max(done, side.caches.access(request, next).ready);
    }
  };
  const Address touched = page_of(address);
  if (huge) {
    // The page that was touched comes last, so that it is found in the caches.
    const Address first = first_page_of_huge(address);
    const Address last = first + (Address{1} << (kHugePageShift - kPageShift));
    for (Address page = first; page < last; ++page) {
      if (page != touched) clear(page);
    }
  }
  clear(touched);
  return done - at;
}

bool MemorySystem::back(unsigned core, Address address, Cycles at, Origin origin) {
  if (!pages_.back(address, at, origin)) return false;
  clear_page(*sides_[core], address, false, at, origin);
  return true;
}

void MemorySystem::shoot_down(Address from, Address to) {
  for (const auto& side : sides_) {
    side->itlb.shoot_down(from, to);
    side->dtlb.shoot_down(from, to);
    side->stlb.shoot_down(from, to);
    side->walker.forget();
  }
}

// --- Accesses ---

Reply MemorySystem::access_slowly(Side& side, Address address, Access kind, Cycles at, Origin origin) {
  const Translation translation = translate(side, kind == Access::kFetch ? side.itlb : side.dtlb, address, at, origin);
  return access_slowly(side, {.line = frame_line(address), .access = kind, .origin = origin, .word = word_of(address)},
                       at, translation);
}

Reply MemorySystem::access_slowly(Side& side, const Request& request, Cycles at, Translation translation) {
  const Fill fill = side.caches.access(request, at + translation.cycles + translation.fault);
  return {fill.ready, fill.level, fill.blame, translation.cycles, translation.fault};
}

Reply MemorySystem::lock(unsigned core, Address address, Cycles at, Cycles hold, Origin origin) {
  if (!far_atomics_) {
    const Reply reply = store(core, address, at, origin);
    last_level_.keep(core, frame_line(address), reply.ready, reply.ready + hold);
    return reply;
  }
  Side& side = *sides_[core];
  Translation translation{side.dtlb.latency, 0};
  if (!side.dtlb.hit(address)) translation = translate(side, side.dtlb, address, at, origin);
  const Cycles own = Cycles{side.caches.l1d.latency} + (side.caches.l2 ? side.caches.l2->latency : 0);
  const Request request{
      .line = frame_line(address), .access = Access::kStore, .origin = origin, .word = word_of(address)};
  attribution_.used(request.line, origin);
  const Fill fill = last_level_.far(core, request, at + translation.cycles + translation.fault + own);
  return {fill.ready, fill.level, Blame::kNone, translation.cycles, translation.fault};
}

// --- Inspection ---

void MemorySystem::reset() {
  for (const auto& side : sides_) {
    side->caches.clear();
    for (Tlb* tlb : {&side->itlb, &side->dtlb, &side->stlb}) tlb->clear();
    side->walker.clear();
  }
  last_level_.clear();
  attribution_.clear();
  reset_statistics(0);
}

void MemorySystem::reset_statistics(Cycles at) {
  for (const auto& side : sides_) {
    side->caches.reset_statistics();
    for (Tlb* tlb : {&side->itlb, &side->dtlb, &side->stlb}) tlb->statistics = {};
    side->walker.statistics = {};
  }
  last_level_.reset_statistics();
  attribution_.reset_statistics();
  pages_.reset_statistics(at);
}

std::vector<std::string> MemorySystem::inconsistencies() const {
  std::vector<std::string> problems;
  for (const auto& side : sides_) side->caches.inconsistencies(problems);
  for (Slot slot = 0; slot < last_level_.cache().slots(); ++slot) {
    if (last_level_.cache().empty(slot)) continue;
    const Address line = last_level_.line_in(slot);
    last_level_.sharers(slot).each([&](unsigned core) {
      if (sides_[core]->caches.contains(line)) return;
      problems.push_back("the directory names a core without it, line " + std::to_string(line));
    });
  }
  return problems;
}

}  // namespace annex::sim
