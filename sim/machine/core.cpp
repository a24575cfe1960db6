// The core model's loop: what each kind of micro-op does, and how blocks begin and end. core.h says what it models; the
// stages that all micro-ops go through are in core_stages.h.
#include "machine/core.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <vector>

#include "machine/core_stages.h"

namespace annex::sim {

namespace {

constexpr Address kNoAddress = ~Address{0};

// Takes no port.
constexpr bool is_special(UopClass kind) {
  return kind == UopClass::kNop || kind == UopClass::kFence || kind == UopClass::kPause;
}

// Takes a port, and is no access to memory.
constexpr bool is_plain(UopClass kind) {
  constexpr auto bit = [](UopClass k) { return 1U << static_cast<unsigned>(k); };
  constexpr unsigned kOthers = bit(UopClass::kNop) | bit(UopClass::kLoad) | bit(UopClass::kStore) |
                               bit(UopClass::kFence) | bit(UopClass::kPause);
  return (kOthers >> static_cast<unsigned>(kind) & 1) == 0;
}

}  // namespace

Core::Core(unsigned index, const Machine& machine, MemorySystem& memory)
    : Core(index, machine.kind_of(index), memory) {}

Core::Core(unsigned index, const CoreKind& kind, MemorySystem& memory)
    : memory_(memory),
      index_(index),
      in_order_(kind.core.kind == "in-order"),
      forwards_any_(kind.core.forwarding == "any"),
      prefetches_(kind.core.prefetches == "fetch"),
      narrow_decode_(kind.core.decode < kind.core.width),
      decode_step_(step_of(kind.core.decode)),
      dispatch_step_(step_of(kind.core.width)),
      retire_step_(step_of(kind.core.retire_width)),
      decode_lead_(kind.core.decode_queue * decode_step_),
      rob_(std::min(kind.core.rob, kMostEntries)),
      rob_mask_(std::bit_ceil(rob_ + 1) - 1),
      scheduler_(kind.core.scheduler),
      front_end_(kind.core.front_end),
      taken_(kind.core.taken),
      mispredict_(kind.core.mispredict),
      forward_(kind.core.forward),
      atomic_(kind.core.atomic),
      fence_(kind.core.fence),
      pause_(kind.core.pause),
      l1d_latency_(kind.l1d.latency),
      l1i_latency_(kind.l1i.latency),
      latency_(kind.core.latency),
      predictor_(kind.predictor),
      loads_(kind.core.load_queue),
      stores_(kind.core.store_queue),
      unwritten_(kind.core.disambiguation == "predicted") {
  // Ports in a new order: those that fewest classes use first, so that the lowest free bit is the port least missed.
  std::array<unsigned, kPorts> users = {};
  for (size_t uop = 0; uop < kUopClasses; ++uop) {
    if (is_special(static_cast<UopClass>(uop))) continue;
    for (unsigned port = 0; port < kPorts; ++port) users[port] += (kind.core.ports[uop] >> port) & 1;
  }
  std::array<unsigned, kPorts> order;
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](unsigned a, unsigned b) { return users[a] < users[b]; });
  for (size_t uop = 0; uop < kUopClasses; ++uop) {
    busy_[uop] = std::min(kind.core.busy[uop], static_cast<uint32_t>(kMostBusy));
    for (unsigned place = 0; place < kPorts; ++place) {
      ports_[uop] |= uint64_t{(kind.core.ports[uop] >> order[place]) & 1} << place;
    }
    // Those that keep their port go the slow way.
    all_ports_[uop] = ports_[uop];
    ports_[uop] *= busy_[uop] == 1 ? kEachCycle : 0;
  }
}

// Rounded up, so that a cycle never has a slot too many.
Cycles Core::step_of(uint32_t width) { return ((Cycles{1} << kSlotShift) + width - 1) / width; }

// What follows is done, and its cycles counted, for that one.
[[gnu::always_inline]] inline void Core::begin(Origin origin) {
  if (origin == origin_) return;
  elapsed_[static_cast<size_t>(origin_)] += now() - since_;
  since_ = now();
  origin_ = origin;
  counts_ = &statistics_.of(origin);
}

CoreStatistics Core::statistics() const {
  CoreStatistics result = statistics_;
  for (const Origin origin : {Origin::kProgram, Origin::kAllocator}) {
    const auto i = static_cast<size_t>(origin);
    const Cycles elapsed = elapsed_[i] + (origin == origin_ ? now() - since_ : 0);
    Cycles& base = result.by_origin[i].cycles[static_cast<size_t>(Cause::kBase)];
    base = 0;
    base = elapsed - result.by_origin[i].all_cycles();
  }
  return result;
}

void Core::run(const Block& block, std::span<const MemoryAccess> accesses, Address next, Origin origin) {
  begin(origin);
  if (block.end == BlockEnd::kOther) [[unlikely]] {
    if (same_string_chunk(block, accesses)) return;
  } else {
    string_ = kNoAddress;
  }
  counts_->instructions += block.instructions;
  counts_->uops += block.uops.size();
  if (block.prefetches > 0) [[unlikely]]
    counts_->software_prefetches += block.prefetches;
  block_ = block.start;
  fetch(block);
  if (narrow_decode_) [[unlikely]]
    decode(block);
  const Cycles branch_done = in_order_ ? run_uops<true>(block, accesses) : run_uops<false>(block, accesses);
  finish(block, next, branch_done);
}

namespace {

bool is_locked(const Block& block, unsigned instruction) {
  return std::ranges::any_of(block.uops, [&](const Uop& uop) { return uop.locked && uop.instruction == instruction; });
}

}  // namespace

void Core::pass(const Block& block, std::span<const MemoryAccess> accesses, Address next, Origin origin) {
  begin(origin);
  if (block.end == BlockEnd::kOther && same_string_chunk(block, accesses)) return;
  counts_->instructions += block.instructions;
  block_ = block.start;
  fetch(block);
  Cycles at = resumes();
  for (const MemoryAccess& access : accesses) {
    if (access.prefetch) {
      if (prefetches_) prefetch(access, at);
      continue;
    }
    const bool locked = block.atomic && is_locked(block, access.instruction);
    const Answer answer = locked         ? ask_locked(access, at)
                          : access.store ? ask<true>(access, at)
                                         : ask<false>(access, at);
    at = later(at, answer.done - std::min(answer.done, l1d_latency_));
  }
  at += block.instructions;
  if (!predicted(block, next)) at += mispredict_;
  pace_.retire_slot = at << kSlotShift;
  if (at > pace_.dispatch) advance(at);
}

// Gives each micro-op its access; accesses that none does follow as micro-ops of their own. Returns when the last
// plain micro-op is done, which is the branch if the block ends with one.
template <bool kInOrder>
Cycles Core::run_uops(const Block& block, std::span<const MemoryAccess> accesses) {
  // Nothing but what is inlined may know where these are, or they would not be held in registers.
  Pace pace = pace_;
  const MemoryAccess* access = accesses.data();
  const MemoryAccess* const end = access + accesses.size();
  const auto next_is_for = [&](const Uop& uop, bool store) __attribute__((always_inline)) {
    if (access == end) return false;
    if (access->instruction < uop.instruction) [[unlikely]] {
      access = apart(pace, [=, this] { return run_extras<kInOrder>(access, end, uop.instruction); });
      if (access == end) return false;
    }
    return access->instruction == uop.instruction && access->store == store;
  };

  Cycles done = pace.dispatch;
  const Uop* const last = block.uops.data() + block.uops.size();
  for (const Uop* uop = block.uops.data(); uop != last; ++uop) {
    if (uop->locked) [[unlikely]] {
      access = apart(pace, [=, this] { return run_extras<kInOrder>(access, end, uop->instruction); });
      const MemoryAccess* const first = access;
      while (access != end && access->instruction == uop->instruction) ++access;
      uop = apart(pace, [=, this] { return run_locked(uop, last, {first, access}); }) - 1;
    } else if (is_plain(uop->kind)) {
      done = run_plain<kInOrder>(pace, *uop);
    } else if (uop->kind == UopClass::kLoad) {
      run_load<kInOrder>(pace, *uop, next_is_for(*uop, false) ? access++ : nullptr);
    } else if (uop->kind == UopClass::kStore) {
      run_store<kInOrder>(pace, *uop, next_is_for(*uop, true) ? access++ : nullptr);
    } else if (uop->prefetch) {
      access = apart(pace, [=, this] { return run_extras<kInOrder>(access, end, uop->instruction); });
      const bool told = access != end && access->prefetch && access->instruction == uop->instruction;
      const MemoryAccess* const own = told ? access++ : nullptr;
      apart(pace, [=, this] { run_prefetch(*uop, own); });
    } else {
      apart(pace, [=, this] { run_special(*uop); });
    }
  }
  if (access != end) [[unlikely]]
    apart(pace, [=, this] { run_extras<kInOrder>(access, end, ~size_t{0}); });
  pace_ = pace;
  return done;
}

// The accesses that no micro-op of their instructions does, of instructions before that one. Returns the next access.
template <bool kInOrder>
[[gnu::noinline]] const MemoryAccess* Core::run_extras(const MemoryAccess* access, const MemoryAccess* end,
                                                       size_t before) {
  for (; access != end && access->instruction < before; ++access) {
    ++counts_->uops;
    ++counts_->extra_accesses;
    if (access->store) {
      run_store<kInOrder>(pace_, {.kind = UopClass::kStore}, access);
    } else {
      run_load<kInOrder>(pace_, {.kind = UopClass::kLoad}, access);
    }
  }
  return access;
}

template <bool kInOrder>
[[gnu::always_inline]] inline Cycles Core::run_plain(Pace& pace, const Uop& uop) {
  const Delay late = dispatch<Queued::kNone>(pace, uop.fused);
  const Cycles issued = issue<kInOrder>(pace, uop.kind, operands_ready(pace, uop));
  const Cycles done = issued + latency_[static_cast<size_t>(uop.kind)];
  set_destinations(uop, done);
  charge(retire(pace, uop.fused, done), late, Cause::kBase);
  return done;
}

template <bool kInOrder>
[[gnu::always_inline]] inline void Core::run_load(Pace& pace, const Uop& uop, const MemoryAccess* access) {
  Delay late = dispatch<Queued::kLoad>(pace, uop.fused);
  const Cycles issued = issue<kInOrder>(pace, UopClass::kLoad, operands_ready(pace, uop));
  const Cycles at = issued + latency_[static_cast<size_t>(UopClass::kLoad)];
  Answer answer;
  if (access == nullptr) [[unlikely]] {
    answer = {.done = at + l1d_latency_, .rest = l1d_latency_};
  } else {
    ++counts_->loads;
    Conflict conflict = {.from = at};
    if (unwritten_.may_matter(*access, at)) [[unlikely]] {
      conflict = look_among_stores(*access, at);
      if (conflict.from != at) [[unlikely]] {
        if (late.cycles == 0) late.cause = waited_for_;
        late.cycles += conflict.from - at;
      }
    }
    if (conflict.data != 0) {
      answer = {.done = later(conflict.from, conflict.data) + forward_, .rest = forward_};
    } else {
      answer = ask<false>(*access, conflict.from);
      // The fault is taken when all before it have retired, and the load then done again.
      if (answer.fault != 0) [[unlikely]]
        answer.done += later(conflict.from, pace.retired()) - conflict.from;
    }
  }
  set_destinations(uop, answer.done);
  charge(retire(pace, uop.fused, answer.done), late, answer);
  loads_.take(pace.retired());
  if (answer.fault != 0) [[unlikely]] {
    ++counts_->page_faults;
    hold_front_end(pace.retired() + front_end_, Cause::kPageFault);
  }
}

template <bool kInOrder>
[[gnu::always_inline]] inline void Core::run_store(Pace& pace, const Uop& uop, const MemoryAccess* access) {
  const Delay late = dispatch<Queued::kStore>(pace, uop.fused);
  const Cycles issued = issue<kInOrder>(pace, UopClass::kStore, operands_ready(pace, uop));
  const Cycles done = issued + latency_[static_cast<size_t>(UopClass::kStore)];
  set_destinations(uop, done);
  charge(retire(pace, uop.fused, done), late, Cause::kBase);
  if (access == nullptr) [[unlikely]] {
    stores_.take(pace.retired());
    return;
  }
  ++counts_->stores;
  const Answer answer = ask<true>(*access, pace.retired());
  if (answer.fault != 0) [[unlikely]] {
    ++counts_->page_faults;
    apart(pace, [&] { spend(answer.fault, Cause::kPageFault); });
  }
  written_ = later(answer.done, written_ + 1);
  store_causes_[stores_.next & stores_.mask] =
      answer.translation > answer.rest ? Why{Cause::kTlb} : Why{answer.cause, answer.blame};
  stores_.take(written_);
  const Register base = uop.addresses > 0 ? uop.sources[0] : kNoRegister;
  const Register index = uop.addresses > 1 ? uop.sources[1] : kNoRegister;
  const Cycles known = later(later(ready_[base], ready_[index]), pace.dispatch + 1);
  unwritten_.add(*access, known, done, written_);
}

void Core::run_prefetch(const Uop& uop, const MemoryAccess* access) {
  if (!prefetches_ || access == nullptr) return run_special({.kind = UopClass::kNop, .fused = uop.fused});
  const Delay late = dispatch<Queued::kLoad>(pace_, uop.fused);
  const Cycles ready = operands_ready(pace_, uop);
  const Cycles issued =
      in_order_ ? issue<true>(pace_, UopClass::kLoad, ready) : issue<false>(pace_, UopClass::kLoad, ready);
  const Cycles at = issued + latency_[static_cast<size_t>(UopClass::kLoad)];
  prefetch(*access, at);
  charge(retire(pace_, uop.fused, at), late, Cause::kBase);
  loads_.take(pace_.retired());
}

void Core::prefetch(const MemoryAccess& access, Cycles at) {
  counts_->prefetches_dropped += !memory_.prefetch(index_, access.address, at, origin_, access.store);
}

// Micro-ops that take no port.
void Core::run_special(const Uop& uop) {
  const Delay late = dispatch<Queued::kNone>(pace_, uop.fused);
  if (uop.kind == UopClass::kFence) {
    ++counts_->fences;
    raise_floor(std::max({now(), written_, floor_, pace_.dispatch + 1}) + fence_);
    charge(retire(pace_, uop.fused, floor_), late, Cause::kAtomic);
    return;
  }
  const Cycles done = pace_.dispatch + (uop.kind == UopClass::kPause ? pause_ : 0);
  set_destinations(uop, done);
  charge(retire(pace_, uop.fused, done), late, Cause::kBase);
  if (uop.kind == UopClass::kPause) hold_front_end(done, Cause::kBase);
}

const Uop* Core::run_locked(const Uop* first, const Uop* last, std::span<const MemoryAccess> accesses) {
  const Delay late = dispatch<Queued::kNone>(pace_, first->fused);
  const Uop* end = first;
  Cycles ready = pace_.dispatch + 1;
  for (; end != last && end->locked && end->instruction == first->instruction; ++end) {
    for (const Register source : end->sources) {
      if (source != kLoaded && source != kResult) ready = std::max(ready, ready_[source]);
    }
  }
  const Cycles before = now();
  const Cycles start = std::max({ready, before, written_, floor_});

  // The line, for writing. The L1's own latency is part of `atomic`.
  Answer line{.done = start + l1d_latency_};
  Address asked = kNoAddress;
  for (const MemoryAccess& access : accesses) {
    if (access.address == asked) continue;  // the load and the store of one instruction
    asked = access.address;
    const Answer answer = ask_locked(access, start);
    if (answer.done > line.done) line = answer;
  }
  const Cycles beyond = line.done - start - std::min(line.done - start, l1d_latency_);
  const Cycles done = memory_.far_atomics() ? line.done : start + beyond + atomic_;
  line.rest = beyond - std::min(beyond, line.fault + line.translation);
  if (line.cause == Cause::kL1) line.cause = Cause::kAtomic;

  for (const Uop* uop = first; uop != end; ++uop) {
    if (uop != first) dispatch<Queued::kNone>(pace_, uop->fused);
    set_destinations(*uop, done);
    const Cycles held = retire(pace_, uop->fused, done);
    const Cycles for_line = std::min(held, late.cycles + line.fault + line.translation + line.rest);
    if (uop == first) charge(for_line, late, line);
    charge(Cause::kAtomic, uop == first ? held - for_line : held);
  }
  ++counts_->atomics;
  counts_->atomic_cycles += now() - before;
  written_ = std::max(written_, done);
  raise_floor(done);
  if (line.fault != 0) {
    ++counts_->page_faults;
    hold_front_end(now() + front_end_, Cause::kPageFault);
  }
  return end;
}

// The lines of a locked access, each kept until the instruction is done.
Core::Answer Core::ask_locked(const MemoryAccess& access, Cycles at) {
  const Cycles hold = atomic_ - std::min(atomic_, l1d_latency_);
  const Address last = access.address + access.bytes - (access.bytes != 0);
  Answer answer = answer_of(memory_.lock(index_, access.address, at, hold, origin_), at);
  for (Address line = line_of(access.address) + 1; line <= line_of(last); ++line) {
    const Answer more = answer_of(memory_.lock(index_, line << kLineShift, at, hold, origin_), at);
    if (more.done > answer.done) answer = more;
  }
  return answer;
}

// As issue(), where that doesn't find a port at once, or for classes that keep theirs for several cycles.
Cycles Core::issue_slowly(UopClass kind, Cycles ready) {
  const auto k = static_cast<size_t>(kind);
  const uint64_t ports = all_ports_[k];
  const unsigned busy = busy_[k];
  const auto shift_of = [](Cycles cycle) { return cycle * kPorts % 64; };
  // Ports taken are never given back, so a search from the first cycle possible need not be done twice.
  const Cycles known = std::max(full_until_[k], pace_.dispatch + 1);
  Cycles at = std::max(ready, known);
  uint64_t free;
  for (;;) {
    // Further ahead than ports are known, dispatch waits. What would come after could hardly have mattered.
    if (at + busy - pace_.dispatch >= kHorizon - kWordCycles) [[unlikely]]
      advance(at + busy - kHorizon / 2);
    free = ports & (word_of(at).free >> shift_of(at));
    for (Cycles cycle = at + 1; cycle < at + busy && free != 0; ++cycle) free &= word_of(cycle).free >> shift_of(cycle);
    if (free != 0) break;
    // Words without a free port are skipped.
    const bool none = (word_of(at).free & ports * kEachCycle) == 0;
    at = none ? (at | (kWordCycles - 1)) + 1 : at + 1;
  }
  if (ready <= known) full_until_[k] = at;
  for (Cycles cycle = at; cycle < at + busy; ++cycle) word_of(cycle).free &= ~((free & -free) << shift_of(cycle));
  ++word_of(at).uops;
  pace_.waiting += (at ^ pace_.dispatch) >= kWordCycles;
  return at;
}

// Moves dispatch on to a later cycle.
void Core::advance(Cycles to) {
  if (to - pace_.dispatch >= kHorizon) {
    words_.fill({});
    pace_.waiting = 0;
  } else {
    for (Cycles word = pace_.dispatch / kWordCycles; word < to / kWordCycles; ++word) {
      words_[word % kWords] = {};
      pace_.waiting -= words_[(word + 1) % kWords].uops;
    }
  }
  pace_.dispatch = to;
  pace_.dispatch_slot = later(pace_.dispatch_slot, to << kSlotShift);
}

void Core::hold_front_end(Cycles until, Cause cause) {
  if (until <= front_until_) return;
  front_until_ = until;
  front_cause_ = cause;
}

// The block's lines. A hit costs nothing: fetch runs that far ahead of dispatch.
inline void Core::fetch(const Block& block) {
  const Address last = line_of(std::max(block.fall_through, block.start + 1) - 1);
  for (Address line = line_of(block.start); line <= last; ++line) {
    if (line == fetched_line_) continue;
    fetched_line_ = line;
    const Cycles at = std::max(pace_.dispatch, front_until_);
    const Reply reply = memory_.fetch(index_, line << kLineShift, at, origin_);
    if (reply.fault != 0) [[unlikely]] {
      ++counts_->page_faults;
      spend(reply.fault, Cause::kPageFault);
    }
    const Cycles took = reply.ready - at - reply.fault;
    if (took > l1i_latency_) hold_front_end(at + took - l1i_latency_, Cause::kFetch);
  }
}

// A block at a time, where decode is the narrower of the two: what it holds up is the next block's dispatch.
inline void Core::decode(const Block& block) {
  pace_.dispatch_slot = later(pace_.dispatch_slot, decoded_slot_);
  // Its queue was empty if the front end had to begin again, and decode waits where it is full.
  const Cycles before = later(decoded_slot_ + decode_step_, front_until_ << kSlotShift) - decode_step_;
  const Cycles from = later(before + decode_lead_, pace_.dispatch_slot) - decode_lead_;
  decoded_slot_ = from + block.slots * decode_step_;
}

// What a taken branch leads to comes in another cycle than the branch in this slot: the slot before it.
inline Cycles Core::after_taken(Cycles slot, Cycles cycles, Cycles step) {
  return later(slot, (((slot >> kSlotShift) + cycles) << kSlotShift) - step);
}

// How the block ended, for the predictors; whether they were right.
inline bool Core::predicted(const Block& block, Address next) {
  bool right = true;
  switch (block.end) {
    case BlockEnd::kConditional:
      right = predictor_.conditional(block.last, next != block.fall_through);
      ++counts_->branches;
      counts_->mispredictions += !right;
      break;
    case BlockEnd::kCall:
      predictor_.called(block.fall_through);
      break;
    case BlockEnd::kIndirectCall:
      predictor_.called(block.fall_through);
      [[fallthrough]];
    case BlockEnd::kIndirectJump:
      right = predictor_.indirect(block.last, next);
      ++counts_->indirects;
      counts_->indirect_mispredictions += !right;
      break;
    case BlockEnd::kReturn:
      right = predictor_.returned(next);
      ++counts_->returns;
      counts_->return_mispredictions += !right;
      break;
    default:
      break;
  }
  return right;
}

// A wrong prediction is known when the branch is done.
inline void Core::finish(const Block& block, Address next, Cycles branch_done) {
  if (!predicted(block, next)) {
    hold_front_end(branch_done + mispredict_, Cause::kBranch);
  } else if (next != block.fall_through) {
    decoded_slot_ = after_taken(decoded_slot_, taken_, decode_step_);
    pace_.dispatch_slot = after_taken(pace_.dispatch_slot, taken_, dispatch_step_);
  }
}

Cycles Core::ask_unit(Address at, Register argument, Origin origin) {
  begin(origin);
  string_ = kNoAddress;
  ++counts_->instructions;
  ++counts_->uops;
  fetch({.start = at, .fall_through = at + 1, .uops = {}});
  asked_late_ = dispatch<Queued::kNone>(pace_, false);
  const Uop uop = {.kind = UopClass::kBranch, .sources = {argument}};
  const Cycles ready = operands_ready(pace_, uop);
  return in_order_ ? issue<true>(pace_, uop.kind, ready) : issue<false>(pace_, uop.kind, ready);
}

void Core::answer(Register result, Cycles at, Cause waited_for) {
  if (result != kNoRegister) ready_[result] = at;
  charge(retire(pace_, false, at), asked_late_, waited_for);
}

// What run_inside() and read_inside() have in common: up to their issue.
template <Core::Queued kQueued>
Cycles Core::issue_inside(Address at, const Uop& uop, Cycles from, Origin origin) {
  begin(origin);
  string_ = kNoAddress;
  ++counts_->instructions;
  ++counts_->uops;
  block_ = at;
  fetch({.start = at, .fall_through = at + 1, .uops = {}});
  asked_late_ = dispatch<kQueued>(pace_, false);
  const Cycles ready = later(operands_ready(pace_, uop), from);
  return in_order_ ? issue<true>(pace_, uop.kind, ready) : issue<false>(pace_, uop.kind, ready);
}

Core::Ran Core::run_inside(Address at, const Uop& uop, Cycles from, Cycles latency, Origin origin) {
  const Cycles known = later(ready_[uop.sources[0]], later(ready_[uop.sources[1]], ready_[uop.sources[2]]));
  const Cycles done = issue_inside<Queued::kNone>(at, uop, from, origin) + latency;
  const Cycles waited = from - std::min(from, later(known, pace_.dispatch + 1));
  set_destinations(uop, done);
  charge(retire(pace_, false, done), asked_late_, waited > 0 ? Cause::kUnit : Cause::kBase);
  return {done, waited};
}

Cycles Core::read_inside(Address at, const Uop& uop, Address address, Cycles latency, Origin origin) {
  const Cycles issued = issue_inside<Queued::kStore>(at, uop, 0, origin) + latency;
  const MemoryAccess access = {.address = address, .bytes = 8};
  ++counts_->loads;
  Conflict conflict = {.from = issued};
  if (unwritten_.may_matter(access, issued)) conflict = look_among_stores(access, issued);
  const Cycles done =
      conflict.data != 0 ? later(conflict.from, conflict.data) + forward_ : ask<false>(access, conflict.from).done;
  set_destinations(uop, issued);
  charge(retire(pace_, false, issued), asked_late_, Cause::kBase);
  store_causes_[stores_.next & stores_.mask] = {Cause::kUnit};
  stores_.take(later(done, written_));
  return done;
}

// A repeated string instruction comes as one block run an iteration. Cores move up to 32 bytes at a time, so iterations
// whose accesses are in the same 32 bytes as those of the one before are part of it.
bool Core::same_string_chunk(const Block& block, std::span<const MemoryAccess> accesses) {
  const bool alone = block.start == block.last && !accesses.empty();
  Address load = kNoAddress;
  Address store = kNoAddress;
  for (const MemoryAccess& access : accesses) (access.store ? store : load) = access.address >> 5;
  const bool same = alone && string_ == block.start && string_load_ == load && string_store_ == store;
  string_ = alone ? block.start : kNoAddress;
  string_load_ = load;
  string_store_ = store;
  return same;
}

void Core::spend(Cycles cycles, Cause cause) {
  pace_.retire_slot = (now() + cycles) << kSlotShift;
  charge(cause, cycles);
  if (now() > pace_.dispatch) advance(now());  // in one step, however long it was
  hold_front_end(now() + front_end_, cause);
  fetched_line_ = kNoAddress;
}

void Core::idle_until(Cycles at) {
  if (at > now()) spend(at - now(), Cause::kIdle);
}

}  // namespace annex::sim
