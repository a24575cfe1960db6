// The simulation: the machine's models, the program's threads, and what holds them together. It knows nothing of QEMU:
// whoever runs the program tells it of blocks, accesses and system calls, and is held while it is not that thread's
// turn.
//
// A block is charged when the thread comes to the next one, since only then is it known where its memory accesses went
// and which way its branch did.
//
// Cores run ahead of each other by up to the quantum, but not where their threads communicate: a block that did is
// taken to do so again, and begins in the order of simulated time (order()). In lock-step every block does.
//
// Simplifications: a block takes effect as a whole when it begins; a first communication may be a quantum off; stores
// are seen by other cores when they are run, however long they then wait in the store queue.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <unordered_set>
#include <vector>

#include "guest/call_tracker.h"
#include "guest/functions.h"
#include "guest/futexes.h"
#include "guest/marked_steps.h"
#include "guest/offload.h"
#include "guest/other_work.h"
#include "guest/registers.h"
#include "guest/restartable.h"
#include "guest/scheduler.h"
#include "guest/split_mix.h"
#include "guest/turns.h"
#include "machine/core.h"
#include "machine/memory_system.h"
#include "machine/parameters.h"
#include "machine/uop.h"

namespace annex::sim {

class Region;

struct TranslatedBlock {
  Block block;
  Function function = Function::kNone;  // that is entered with it
  bool stamps = false;                  // its last instruction reads the time stamp counter
  // It is one locked instruction. One that QEMU cannot run beside other threads (a misaligned one) it runs while it
  // holds those up: it starts it again, alone in a block. There no thread may wait. In lock-step all are alone, and it
  // is the second start that tells; else such blocks are rare, and none is waited at.
  bool alone = false;
  uint8_t accesses = 0;   // of one iteration, where a repeated string instruction ends it: it runs as a whole
  bool searches = false;  // which may end before its counter does
  TranslatedBlock* again = nullptr;  // that instruction alone
  uint16_t in_order = 0;             // so many of its next runs begin in the order of simulated time
};

// What a thread of the program has done since it was last charged, and where it is.
struct GuestThread {
  unsigned id = 0;
  bool away = false;
  Core* core = nullptr;  // while it has the turn
  Turns::Seat* seat = nullptr;
  TranslatedBlock* pending = nullptr;
  std::unique_ptr<CapturedCall> captured;
  uint64_t instructions = 0;
  const TranslatedBlock* ordered = nullptr;  // the last of its blocks that ran in the order of time
  uint64_t ordered_at = 0;                   // by its instructions
  CallTracker calls;
  Restartable sequences;
  MarkedStep step;  // on a machine with an accelerator for those
  std::vector<MemoryAccess> accesses;

  void access(Address address, uint16_t instruction, uint8_t bytes, bool store) {
    // One access of the program may come in pieces.
    if (!accesses.empty()) {
      MemoryAccess& last = accesses.back();
      if (last.instruction == instruction && last.store == store && last.address + last.bytes == address &&
          last.bytes < 64) {
        last.bytes = static_cast<uint8_t>(last.bytes + bytes);
        return;
      }
    }
    accesses.push_back({address, instruction, bytes, store});
  }
  void prefetch(Address address, uint16_t instruction, bool to_write) {
    accesses.push_back(
        {.address = address, .instruction = instruction, .bytes = 1, .store = to_write, .prefetch = true});
  }
};

// What whoever runs the program does for the simulation: around a wait in the middle of the program's code, at the end
// of what can be simulated, and for registers.
struct Bracket {
  void (*leave)() = nullptr;
  void (*enter)() = nullptr;
  void (*refuse)(const char* why) = nullptr;  // the simulation cannot go on: does not return
  GuestRegisters* registers = nullptr;
};

class Simulation final : private Clock {
 public:
  // In lock-step a core gets no lead. Blocks should then be of one instruction: so each takes effect in its turn.
  Simulation(const Machine& machine, uint64_t seed, bool lock_step, Bracket bracket);

  GuestThread& start_thread();
  void end_thread(GuestThread& thread);

  // The thread comes to this block. Returns when it may run it.
  void enter_block(GuestThread& thread, TranslatedBlock& block) {
    if (thread.core == nullptr) [[unlikely]]
      take_turn(thread, true);
    const bool again = block.alone && thread.pending != nullptr && thread.pending->block.start == block.block.start;
    if (again) [[unlikely]] {
      thread.accesses.clear();
    } else if (thread.captured != nullptr) [[unlikely]] {
      if (in_captured_call(thread, block)) return;
    } else if (thread.pending != nullptr) {
      charge(thread, block.block.start);
    } else if (thread.step.left_out) [[unlikely]] {
      thread.accesses.clear();
      if (steps_->goes_on(thread.step, block.block)) return;
    }
    const bool known = block.function != Function::kNone;
    const bool calls = known && !thread.calls.inside();
    const Cycles until = block.in_order > 0 ? first_until_ : calls ? call_until_ : run_until_;
    if (thread.core->resumes() >= until || attention_.load(std::memory_order_relaxed)) [[unlikely]] {
      if (lock_step_ ? !again : !block.alone) look_around(thread, block.block.start, until);
    }
    if (known) [[unlikely]] {
      if (come_to(thread, block)) return;
    }
    thread.pending = &block;
  }
  // An access of the repeated string instruction that ends the pending block: each iteration is charged as a run.
  void access_repeated(GuestThread& thread, Address address, uint8_t bytes, bool store);
  // The thread comes to the block at that address after such an instruction. Its last run finds the counter at zero.
  void end_repeated(GuestThread& thread, Address next);
  // It did not run the block after all: it comes to it again.
  static void leave_block(GuestThread& thread, const TranslatedBlock& block) {
    thread.pending = nullptr;
    if (block.function == Function::kMarker) thread.step.again = block.block.start;
  }

  // --- for system calls (guest/system_calls.h), by the thread that has the turn
  void settle(GuestThread& thread);  // charges what is pending
  void spend(GuestThread& thread, Cycles cycles);
  static Cycles now(const GuestThread& thread) { return thread.core->now(); }
  unsigned core_of(const GuestThread& thread) const { return scheduler_.core_of(thread.id); }
  // Until it is woken, or that time; false where the time was over.
  bool sleep(GuestThread& thread, Cycles until);
  void wake(unsigned thread, Cycles at);
  void leave(GuestThread& thread);
  void come_back(GuestThread& thread);
  void yield(GuestThread& thread);
  // All other cores that run a thread now lose so many cycles; how many they are.
  unsigned interrupt_others(const GuestThread& thread, Cycles cycles);
  void interrupt_all();  // so that all threads learn anew on which CPU they are

  const Machine& machine() const { return machine_; }
  MemorySystem& memory() { return memory_; }
  Futexes& futexes() { return futexes_; }
  Functions& functions() { return functions_; }
  bool follows(const Marker& marker) const { return is_of_region(marker) ? region_ != nullptr : steps_ != nullptr; }
  // Only what the program does in regions of interest is timed; before it runs.
  void time_only(Region& region) {
    region_ = &region;
    timed_ = false;
  }
  uint64_t random() { return random_.next(); }  // of the seed's sequence

  // --- for the observer, from its own thread: the running thread calls `act` before its next block
  void on_attention(std::function<void()> act) { on_attention_ = std::move(act); }
  void ask_for_attention() {
    asked_.store(true, std::memory_order_relaxed);
    attention_.store(true, std::memory_order_release);
  }
  bool attention_asked() const { return asked_.load(std::memory_order_relaxed); }

  // The program handles a signal at that address.
  void add_handler(Address handler) { handlers_.insert(handler); }
  // The thread's own call, captured so far, if any, runs at its core: it is about to wait.
  void give_up_capture(GuestThread& thread);
  // The thread lends its thread pointer to captured calls from now on.
  void park(GuestThread& thread);
  // The sequences of the thread whose data it sees now.
  Restartable& sequences_seen_by(GuestThread& thread) {
    const bool lent = thread.captured != nullptr && thread.captured->own_thread_pointer != 0;
    return lent ? parked_[thread.captured->unit]->sequences : thread.sequences;
  }

  // --- results
  void finish();  // what a unit still has to do is done
  uint64_t instructions() const;
  Cycles cycles() const;  // of the slowest core
  void describe(nlohmann::json& out);

 private:
  // A thread that waits for what a unit decides.
  struct Waiter {
    unsigned thread;
    Unit& unit;
    const std::function<std::optional<Cycles>()>& ask;
    std::optional<Cycles> said;
    Cycles until;  // when no core is further behind, it goes on
  };

  // How many runs of a block are in order after one that communicated.
  static constexpr uint16_t kWritesInOrder = 16;
  static constexpr uint16_t kReadsInOrder = 16384;
  static constexpr uint64_t kPollsWithin = 64;  // instructions, from run to run

  Cycles now(unsigned core) const override { return cores_[core].resumes(); }
  void idle_until(unsigned core, Cycles at) override { cores_[core].idle_until(at); }
  void switch_thread(unsigned core) override;

  void charge(GuestThread& thread, Address next);
  bool follow_calls(GuestThread& thread);
  void order(GuestThread& thread, TranslatedBlock& block);
  void repeat(GuestThread& thread);
  void take_limits() {
    run_until_ = scheduler_.run_until();
    first_until_ = scheduler_.first_until();
    call_until_ = offload_ != nullptr ? first_until_ : run_until_;
  }
  void take_turn(GuestThread& thread, bool in_code, Cycles sleeps = kNever);
  void pass_turn(GuestThread& thread, bool in_code, Cycles sleeps = kNever);
  void look_around(GuestThread& thread, Address next, Cycles until);
  // A function of the allocator's family, or a marker; whether the block is left out of the timing.
  bool come_to(GuestThread& thread, const TranslatedBlock& block);
  // A step of the allocator's begins or ends; whether the block is left out of the timing.
  bool come_to_marker(GuestThread& thread, const TranslatedBlock& block);
  // A region of interest begins or ends: with all cores at that time.
  void come_to_region(GuestThread& thread, const TranslatedBlock& block);
  void enter_allocator(GuestThread& thread, const TranslatedBlock& block);
  // Charges what is pending of a captured call; whether the block belongs to it too, and nothing more is to be done.
  bool in_captured_call(GuestThread& thread, TranslatedBlock& block);
  void record(GuestThread& thread, Address next);
  // `result`: of one that was left by a jump 0.
  void finish_captured(GuestThread& thread, const TranslatedBlock& block, Address result);
  using Ask = std::function<std::optional<Cycles>()>;
  Cycles when_decided(GuestThread& thread, const TranslatedBlock& block, Unit& unit, const Ask& ask);
  // The thread waits, and keeps its core, until no core is further behind than this time.
  void wait_for_others(GuestThread& thread, Cycles until);

  const Machine machine_;
  const bool lock_step_;
  const Bracket bracket_;
  MemorySystem memory_;
  std::deque<Core> cores_;
  std::unordered_set<Address> handlers_;
  std::vector<GuestThread*> parked_;  // by unit; they never end
  std::vector<Waiter*> waiters_;
  std::unique_ptr<Offload> offload_;    // where the machine has a unit for it
  std::unique_ptr<MarkedSteps> steps_;  // the same
  Region* region_ = nullptr;            // where only regions of interest are timed
  bool timed_ = true;                   // what runs now
  OtherWork other_work_;
  Scheduler scheduler_;
  std::atomic<bool> attention_{false};  // the running thread should look around
  std::atomic<bool> asked_{false};      // for the observer
  std::function<void()> on_attention_;
  Turns turns_;
  Futexes futexes_;
  Functions functions_;
  std::vector<std::unique_ptr<GuestThread>> threads_;  // by id; none where it has ended
  std::array<CallStatistics, kCountedFunctions> calls_{};
  uint64_t communications_ = 0;  // of the memory system's, those seen
  uint64_t turns_count_ = 0;
  Cycles first_until_ = 0;  // of the thread that has the turn: so long its core is the furthest behind
  Cycles run_until_ = 0;    // with its lead
  Cycles call_until_ = 0;   // the one of them at which a call of the allocator may begin
  SplitMix random_;
};

}  // namespace annex::sim
