// The simulation: see simulation.h.
#include "guest/simulation.h"

#include <algorithm>
#include <chrono>
#include <span>

#include "guest/region.h"

namespace annex::sim {

Simulation::Simulation(const Machine& machine, uint64_t seed, bool lock_step, Bracket bracket)
    : machine_(machine),
      lock_step_(lock_step),
      bracket_(bracket),
      memory_(machine_),
      other_work_(machine_.program, memory_, machine_.thread_cores()),
      scheduler_(machine_.thread_cores(), lock_step ? 0 : machine_.quantum, machine_.from_us(machine_.system.slice_us),
                 *this),
      turns_(scheduler_, attention_),
      random_(seed) {
  for (unsigned i = 0; i < machine_.all_cores(); ++i) cores_.emplace_back(i, machine_, memory_);
  if (machine_.mallacc.used()) steps_ = std::make_unique<MarkedSteps>(machine_);
  if (machine_.has_unit()) offload_ = std::make_unique<Offload>(machine_, cores_, memory_);
}

// --- threads and turns ----------------------------------------------------------------------------------------------

GuestThread& Simulation::start_thread() {
  const bool first = threads_.empty();
  Cycles at = 0;
  if (!first) {
    // The parent has the turn. A new thread's first instruction is some way off, by the seed.
    at = cores_[scheduler_.core_of(scheduler_.running())].now() + machine_.from_us(machine_.system.wake_us) +
         random_.next() % 64;
  }
  auto& thread = threads_.emplace_back(std::make_unique<GuestThread>());
  thread->id = scheduler_.add(at);
  thread->seat = &turns_.add();
  if (first) turns_.begin();
  take_limits();
  return *thread;
}

void Simulation::end_thread(GuestThread& thread) {
  settle(thread);
  const Cycles at = now(thread);
  scheduler_.remove(thread.id);
  const unsigned id = thread.id;
  threads_[id].reset();
  turns_.pass(id, at);
}

void Simulation::take_turn(GuestThread& thread, bool in_code, Cycles sleeps) {
  if (in_code && bracket_.leave != nullptr) bracket_.leave();
  if (sleeps == kNever) {
    Turns::hold(*thread.seat);
  } else {
    const double ns = std::min(static_cast<double>(sleeps) / machine_.ghz, 1e15);
    turns_.hold_asleep(*thread.seat, std::chrono::nanoseconds(static_cast<int64_t>(ns)));
  }
  if (in_code && bracket_.enter != nullptr) bracket_.enter();
  const unsigned core = scheduler_.core_of(thread.id);
  thread.core = &cores_[core];
  take_limits();
  thread.sequences.runs_on(core, scheduler_.switched());
}

void Simulation::pass_turn(GuestThread& thread, bool in_code, Cycles sleeps) {
  const Cycles at = now(thread);
  thread.core = nullptr;
  ++turns_count_;
  turns_.pass(thread.id, at);
  take_turn(thread, in_code, sleeps);
}

// Between two blocks: its time is over, or somebody wants something.
void Simulation::look_around(GuestThread& thread, Address next, Cycles until) {
  if (thread.sequences.inside(next)) return;  // it will be asked again before the next block
  attention_.store(false, std::memory_order_relaxed);
  if (asked_.load(std::memory_order_acquire)) {
    on_attention_();
    asked_.store(false, std::memory_order_release);
  }
  // What the observer asks for, at any time of the host's, must not change whose turn it is.
  if (thread.core->resumes() >= until || turns_.waits()) pass_turn(thread, true);
}

void Simulation::switch_thread(unsigned core) {
  if (steps_ != nullptr) steps_->switch_thread(core);
  cores_[core].spend(machine_.from_us(machine_.system.switch_us), Cause::kSystemCall);
}

namespace {

Cycles in_kernel(const Core& core) {
  return core.charged(Cause::kPageFault) + core.charged(Cause::kSystemCall) + core.charged(Cause::kIdle);
}

}  // namespace

// --- blocks ---------------------------------------------------------------------------------------------------------

void Simulation::charge(GuestThread& thread, Address next) {
  const Block& block = thread.pending->block;
  const Origin origin = thread.calls.inside() ? Origin::kAllocator : Origin::kProgram;
  if (timed_) [[likely]] {
    thread.core->run(block, thread.accesses, next, origin);
    if (other_work_.looks() && origin == Origin::kProgram) [[unlikely]]
      other_work_.saw(thread.core->index(), block.instructions, thread.accesses);
    if (follow_calls(thread)) other_work_.after_call(*thread.core, next);
    order(thread, *thread.pending);
  } else {
    thread.core->pass(block, thread.accesses, next, origin);
    follow_calls(thread);
  }
  thread.accesses.clear();
  thread.pending = nullptr;
}

// Calls and returns of the pending block, which has been run; whether it returned from the allocator.
inline bool Simulation::follow_calls(GuestThread& thread) {
  const Block& block = thread.pending->block;
  thread.instructions += block.instructions;
  if (thread.accesses.empty() || block.end < BlockEnd::kCall || block.end > BlockEnd::kReturn) return false;
  const MemoryAccess& last = thread.accesses.back();
  if (block.end != BlockEnd::kReturn) {
    if (last.store) thread.calls.call(last.address);
    return false;
  }
  if (!thread.calls.returned(last.address)) return false;
  thread.calls.leave(thread.core->now(), in_kernel(*thread.core), thread.instructions, calls_);
  return true;
}

// Where its core asked for a line that another core had just got, threads communicate: through that line, or its
// neighbours. The block's next runs then begin in order. One that only reads and is soon run again polls, which it may
// do for long before somebody writes.
void Simulation::order(GuestThread& thread, TranslatedBlock& block) {
  if (memory_.communications() == communications_) [[likely]] {
    if (block.in_order > 0) [[unlikely]] {
      const bool polls = thread.ordered == &block && thread.instructions - thread.ordered_at < kPollsWithin;
      const uint16_t step = polls || block.in_order <= kWritesInOrder ? 1 : kReadsInOrder / kWritesInOrder;
      block.in_order -= std::min(block.in_order, step);
      thread.ordered = &block;
      thread.ordered_at = thread.instructions;
    }
    return;
  }
  communications_ = memory_.communications();
  thread.ordered = &block;
  thread.ordered_at = thread.instructions;
  const bool writes = std::any_of(thread.accesses.begin(), thread.accesses.end(), [](auto& a) { return a.store; });
  block.in_order = writes ? kWritesInOrder : kReadsInOrder;
}

// The pending block's last instruction, once more.
void Simulation::repeat(GuestThread& thread) {
  TranslatedBlock* again = thread.pending->again;
  thread.captured != nullptr ? record(thread, again->block.start) : charge(thread, again->block.start);
  thread.pending = again;
}

namespace {

bool belongs_to_last(const MemoryAccess& access, const Block& block) {
  return access.instruction + 1u == block.instructions;
}

}  // namespace

void Simulation::access_repeated(GuestThread& thread, Address address, uint8_t bytes, bool store) {
  if (thread.pending == nullptr) return;  // left out
  const size_t all = thread.pending->again->accesses;
  const auto& made = thread.accesses;
  if (made.size() >= all && belongs_to_last(made[made.size() - all], thread.pending->block)) repeat(thread);
  const auto instruction = static_cast<uint16_t>(thread.pending->block.instructions - 1);
  thread.accesses.push_back({address, instruction, bytes, store});
}

void Simulation::end_repeated(GuestThread& thread, Address next) {
  const TranslatedBlock& block = *thread.pending;
  const bool any = !thread.accesses.empty() && belongs_to_last(thread.accesses.back(), block.block);
  if (any && !block.again->searches && next != block.again->block.start) repeat(thread);
}

bool Simulation::come_to(GuestThread& thread, const TranslatedBlock& block) {
  if (block.function == Function::kMarker) return come_to_marker(thread, block);
  if (!thread.calls.inside()) enter_allocator(thread, block);
  return false;
}

void Simulation::come_to_region(GuestThread& thread, const TranslatedBlock& block) {
  const bool begins = block.block.marker.kind == static_cast<uint8_t>(MarkerKind::kRegionBegin);
  if (begins == timed_) return;  // said twice
  const Cycles at = thread.core->resumes();
  if (!block.alone) wait_for_others(thread, at);
  for (unsigned core = 0; core < machine_.thread_cores(); ++core) {
    if (!scheduler_.busy(core, at)) cores_[core].idle_until(at);
  }
  if (begins == timed_) return;  // meanwhile by another thread
  timed_ = begins;
  communications_ = memory_.communications();
  begins ? region_->begin() : region_->end();
}

bool Simulation::come_to_marker(GuestThread& thread, const TranslatedBlock& block) {
  if (is_of_region(block.block.marker)) {
    come_to_region(thread, block);
    return false;
  }
  const Origin origin = thread.calls.inside() ? Origin::kAllocator : Origin::kProgram;
  if (thread.captured == nullptr || !thread.captured->recording) {
    return steps_->come_to(thread.step, block.block, *bracket_.registers, *thread.core, origin);
  }
  Core& support = cores_[machine_.first_of(kSupportCore) + thread.captured->unit];
  return steps_->come_to(thread.step, block.block, *bracket_.registers, support, origin, &thread.captured->call);
}

void Simulation::enter_allocator(GuestThread& thread, const TranslatedBlock& block) {
  thread.calls.enter(block.function, now(thread), in_kernel(*thread.core), thread.instructions);
  if (offload_ != nullptr) {
    thread.captured =
        offload_->begin(block.function, *thread.core, block.block.start, thread.calls.slot(), *bracket_.registers);
  }
}

// --- calls that a unit runs -----------------------------------------------------------------------------------------

void Simulation::park(GuestThread& thread) {
  if (offload_ == nullptr) return;
  offload_->park(*bracket_.registers);
  parked_.push_back(&thread);
}

void Simulation::record(GuestThread& thread, Address next) {
  if (!thread.captured->recording) return charge(thread, next);
  offload_->record(*thread.captured, thread.pending->block, thread.accesses, next, thread.core->now());
  if (Offload::spins(*thread.captured, thread.pending->block)) give_up_capture(thread);
  follow_calls(thread);
  thread.accesses.clear();
  thread.pending = nullptr;
}

bool Simulation::in_captured_call(GuestThread& thread, TranslatedBlock& block) {
  if (thread.pending != nullptr) {
    record(thread, block.block.start);
  } else if (thread.step.left_out) {
    thread.accesses.clear();
    if (steps_->goes_on(thread.step, block.block)) return true;
  }
  if (thread.calls.inside()) {
    if (handlers_.contains(block.block.start)) {
      bracket_.refuse("a signal came in the middle of a call that the support core runs: not simulated");
    }
    if (!Offload::left_by_a_jump(*thread.captured, *bracket_.registers)) {
      // Of one that is recorded nobody sees the middle.
      if (!thread.captured->recording) return false;
      if (block.function != Function::kMarker || !come_to_marker(thread, block)) thread.pending = &block;
      return true;
    }
    thread.calls.leave(now(thread), in_kernel(*thread.core), thread.instructions, calls_);
    finish_captured(thread, block, 0);
    return false;
  }
  finish_captured(thread, block, bracket_.registers->read(GuestRegister::kRax));
  return false;
}

void Simulation::finish_captured(GuestThread& thread, const TranslatedBlock& block, Address result) {
  const std::unique_ptr<CapturedCall> call = std::move(thread.captured);
  offload_->restore(*call, *bracket_.registers);
  Offload::conclude(*call, result);
  Core& core = *thread.core;
  if (!call->recording) return offload_->over(*call, core);
  if (!offload_->served(*call, core)) {
    communications_ = memory_.communications();
    other_work_.after_call(core, block.block.start);
    return;
  }
  Unit& unit = offload_->unit_of(*call);
  const Service service = Offload::service_of(call->function);
  const Cycles room = when_decided(thread, block, unit, [&] { return unit.room(core.index(), service); });
  if (room > core.now()) core.spend(room - core.now(), Cause::kUnit);
  Call data;
  const uint64_t number = offload_->ask(*call, core, data);
  Cycles when = 0;
  if (Offload::needs_answer(call->function)) {
    when = when_decided(thread, block, unit, [&] { return unit.answer(number); });
  }
  offload_->answer(*call, core, when, data, block.block.start);
  other_work_.after_call(core, block.block.start);
  communications_ = memory_.communications();
}

// What the unit says as soon as it is decided. Who else asks until then has a part in who goes first. Of all threads
// that wait for a unit one goes on with it, and tells the others: else each would have its turn for each step.
Cycles Simulation::when_decided(GuestThread& thread, const TranslatedBlock& block, Unit& unit, const Ask& ask) {
  const Cycles since = thread.core->resumes();
  const Cycles delay = unit.least_delay();
  Waiter self{thread.id, unit, ask, ask(), 0};
  if (self.said) return *self.said;
  waiters_.push_back(&self);
  for (;;) {
    const Cycles next = unit.decides_next();
    self.until = next - delay;
    if (self.until > since && !block.alone) wait_for_others(thread, self.until);
    if (self.said) break;
    unit.advance(self.until + delay);
    for (Waiter* waiter : waiters_) {
      if (&waiter->unit != &unit || waiter->said) continue;
      waiter->said = waiter->ask();
      waiter->until = waiter->said ? 0 : unit.decides_next() - delay;
      if (waiter != &self) scheduler_.hold(waiter->thread, waiter->until);
    }
    if (self.said) break;
  }
  std::erase(waiters_, &self);
  return *self.said;
}

void Simulation::wait_for_others(GuestThread& thread, Cycles until) {
  scheduler_.hold(thread.id, until);
  pass_turn(thread, true);
}

void Simulation::give_up_capture(GuestThread& thread) {
  if (thread.captured == nullptr || !thread.captured->recording) return;
  offload_->give_up(*thread.captured, *thread.core);
}

// --- system calls ---------------------------------------------------------------------------------------------------

void Simulation::settle(GuestThread& thread) {
  if (thread.core == nullptr) take_turn(thread, false);
  if (thread.pending == nullptr) return;
  const Address next = thread.pending->block.fall_through;
  thread.captured != nullptr ? record(thread, next) : charge(thread, next);
}

void Simulation::spend(GuestThread& thread, Cycles cycles) {
  if (thread.captured != nullptr && thread.captured->recording) {
    thread.captured->call.add_kernel(cycles);
  } else {
    thread.core->spend(cycles, Cause::kSystemCall);
  }
}

bool Simulation::sleep(GuestThread& thread, Cycles until) {
  give_up_capture(thread);
  thread.sequences.waits();
  const Cycles since = now(thread);
  scheduler_.sleep(thread.id, until);
  pass_turn(thread, false, until == kNever ? kNever : until - std::min(until, since));
  return !scheduler_.timed_out(thread.id);
}

void Simulation::wake(unsigned thread, Cycles at) {
  scheduler_.wake(thread, at);
  take_limits();
}

void Simulation::leave(GuestThread& thread) {
  give_up_capture(thread);
  const Cycles at = now(thread);
  scheduler_.leave(thread.id);
  thread.sequences.waits();
  thread.away = true;
  thread.core = nullptr;
  turns_.pass(thread.id, at);
}

void Simulation::come_back(GuestThread& thread) {
  thread.away = false;
  turns_.come_back(thread.id, *thread.seat);
  take_turn(thread, false);
}

void Simulation::yield(GuestThread& thread) {
  give_up_capture(thread);
  scheduler_.yield(thread.id);
  pass_turn(thread, false);
}

void Simulation::interrupt_all() {
  for (const auto& thread : threads_) {
    if (thread != nullptr) thread->sequences.interrupted();
  }
}

unsigned Simulation::interrupt_others(const GuestThread& thread, Cycles cycles) {
  unsigned count = 0;
  for (unsigned i = 0; i < machine_.thread_cores(); ++i) {
    if (&cores_[i] == thread.core || !scheduler_.busy(i, now(thread))) continue;
    cores_[i].spend(cycles, Cause::kSystemCall);
    ++count;
  }
  return count;
}

// --- results --------------------------------------------------------------------------------------------------------

void Simulation::finish() {
  if (offload_ != nullptr) offload_->finish();
}

uint64_t Simulation::instructions() const {
  uint64_t sum = 0;
  for (const Core& core : cores_) {
    const CoreStatistics statistics = core.statistics();
    for (const ExecutionStatistics& s : statistics.by_origin) sum += s.instructions;
  }
  return sum;
}

Cycles Simulation::cycles() const {
  Cycles most = 0;
  for (const Core& core : cores_) most = std::max(most, core.now());
  return most;
}

}  // namespace annex::sim
