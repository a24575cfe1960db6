// A heap that is taken from its owner, under the scheduler: see lease_world.h.
#include "unit/remote/lease_world.h"

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "front/lease.h"
#include "remote/steps.h"

namespace annex {

namespace test {
namespace {

constexpr auto kOrder = std::memory_order_seq_cst;
constexpr uint32_t kBlocks = 6;
constexpr uint32_t kBlocksInAPage = 2;
constexpr uint32_t kOfTheProgram = 99;  // what a program writes into its blocks
constexpr uint16_t kNumber = 1;         // of the heap
constexpr uint16_t kNoNumber = 0;

using Blocks = std::array<bool, kBlocks + 1>;
using Word = remote::AtomicRef<uint32_t>;

struct Heap {
  front::Lease<Heap> lease;
  remote::Lock lock;  // its inbox's

  // Of the class: blocks are numbered from 1, and 0 is none.
  uint32_t list = 0;
  // Of its current slab.
  uint32_t freed = 0;
  uint32_t used = 0;  // the countdown
  std::array<uint32_t, kBlocks + 1> next = {};
  Blocks in_hole = {};
  bool aside = false;
  uint32_t kept = 0;
  uint32_t ready = 0;
  uint32_t from_ready = 0;
};

inline const char* field(Heap* const&) { return "a heap"; }
inline const char* field(Heap** const&) { return "where a thread has its heap"; }
inline std::string text(Heap* heap);
inline std::string text(Heap** mine) { return mine == nullptr ? "nowhere" : "there"; }

// What a thread has: its thread-local variables.
struct Thread {
  Heap* mine = nullptr;
  uint16_t number = kNoNumber;
  Heap* own = nullptr;
  long id = 0;                  // the kernel's number of it
  bool may_be_reached = false;  // by others, at `mine` and `number`
  bool vanished = false;
};

class LeaseWorld : public Scheduler::Scenario {
 public:
  explicit LeaseWorld(const LeasePlan& plan);
  ~LeaseWorld() override;

  std::vector<Scheduler::Thread> threads() override;
  void check() override;
  void reached(const void* place) override;
  std::string name_of(const void* place) const;
  const Heap* none() const { return &none_; }

 private:
  class OwnHeap;

  void perform(Thread* self, const std::string& operation);

  // --- src/core, src/front: the fast paths, and the slow ones
  void allocate(Thread* self);
  void free_one(Thread* self);
  void allocate_slow(Thread* self);
  void put_back(Thread* self, uint32_t block);
  void settle(Thread* self, bool ends = true);
  void come_back(Thread* self);
  void leave_heap(Thread* self);
  void start(Thread* self);
  void vanish(Thread* self);
  void end_aside();

  // --- of whoever takes the heap
  void take();
  bool thread_exists(long id);
  bool barrier_in_all_threads();
  void make_holes_aside();
  void add_list(Blocks* free, uint32_t first);
  uint32_t link(const Blocks& free);
  void purge(const Blocks& holes);

  void occupy();
  void vacate();
  void hand_out(Thread* self, uint32_t block);
  void count_list(uint32_t first, const char* where);
  bool has(LeaseFault fault) const { return plan_.fault == fault; }

  LeasePlan plan_;
  Heap heap_;
  Heap none_;  // of a thread that has none, or whose heap has been taken
  std::deque<Thread> threads_;
  std::array<const Thread*, kBlocks + 1> holder_ = {};  // of the blocks in use
  std::array<uint32_t, kBlocks + 1> places_ = {};       // at the end: in how many each block is
  const Thread* writing_ = nullptr;                     // the thread that writes to its own variables
  bool occupied_ = false;                               // the heap, by whoever may change all of it
  bool pool_empty_ = true;
  bool barrier_passed_ = false;  // by all threads, since the heap was last pointed away from its owner
  int barrier_ = 0;              // a place
};

LeaseWorld* lease_world = nullptr;

std::string text(Heap* heap) { return heap == lease_world->none() ? "none" : "the heap"; }

std::string named(uint32_t block) { return "block " + std::to_string(block); }

LeaseWorld::LeaseWorld(const LeasePlan& plan) : plan_(plan), threads_(plan.programs.size()) {
  lease_world = this;
  long threads = 0;
  for (Thread& thread : threads_) {
    thread.mine = thread.own = &none_;
    thread.id = ++threads;
  }
  Thread* const first = &threads_.front();
  first->mine = first->own = &heap_;
  first->number = kNumber;
  first->may_be_reached = true;
  heap_.lease.begin(&first->mine, &first->number, first->id);
  for (uint32_t block = 1; block <= kBlocks; ++block) {
    heap_.next[block] = kOfTheProgram;
    holder_[block] = first;
  }
  const auto make_list = [this](const std::string& blocks, uint32_t* list) {
    for (size_t i = blocks.size(); i-- > 0;) {
      const uint32_t block = static_cast<uint32_t>(blocks[i] - '0');
      heap_.next[block] = *list;
      *list = block;
      holder_[block] = nullptr;
    }
  };
  make_list(plan.ready, &heap_.list);
  make_list(plan.freed, &heap_.freed);
  heap_.used = kBlocks - static_cast<uint32_t>(plan.freed.size());
}

LeaseWorld::~LeaseWorld() { lease_world = nullptr; }

std::vector<Scheduler::Thread> LeaseWorld::threads() {
  std::vector<Scheduler::Thread> threads;
  for (size_t i = 0; i < plan_.programs.size(); ++i) {
    const LeaseProgram& program = plan_.programs[i];
    std::string name;
    for (const std::string& operation : program) name += (name.empty() ? "" : ", ") + operation;
    threads.push_back({name, [this, &program, self = &threads_[i]] {
                         for (const std::string& operation : program) perform(self, operation);
                       }});
  }
  return threads;
}

void LeaseWorld::perform(Thread* self, const std::string& operation) {
  if (operation == "malloc") return allocate(self);
  if (operation == "free") return free_one(self);
  if (operation == "settle") return settle(self);
  if (operation == "jump") return settle(self, false);
  if (operation == "leave") return leave_heap(self);
  if (operation == "start") return start(self);
  if (operation == "vanish") return vanish(self);
  take();
}

// --- the owner ------------------------------------------------------------------------------------------------------

// As in front/thread_heap.cpp.
class LeaseWorld::OwnHeap {
 public:
  OwnHeap(LeaseWorld* world, Thread* self) : heap_(now(self)) {
    while (heap_ == &world->none_ ? self->own != &world->none_ : !enters(self)) {
      world->come_back(self);
      heap_ = now(self);
    }
    has_heap_ = heap_ != &world->none_;
  }
  ~OwnHeap() {
    if (has_heap_) heap_->lease.leave(step_);
  }
  OwnHeap(const OwnHeap&) = delete;
  OwnHeap& operator=(const OwnHeap&) = delete;

  explicit operator bool() const { return has_heap_; }
  void never_ends() { has_heap_ = false; }

 private:
  bool enters(Thread* self) { return (step_ = heap_->lease.enter(heap_, self->mine)) != heap_->lease.kNoStep; }
  static Heap* now(Thread* self) { return remote::AtomicRef<Heap*>(self->mine).load(kOrder); }

  Heap* heap_;
  bool has_heap_;
  uint64_t step_ = 0;
};

void LeaseWorld::allocate(Thread* self) {
  if (remote::AtomicRef<Heap*>(self->mine).load(kOrder) == &none_) return allocate_slow(self);
  const uint32_t block = Word(heap_.list).load(kOrder);
  if (block == 0) return allocate_slow(self);
  const uint32_t next = Word(heap_.next[block]).load(kOrder);
  if (has(LeaseFault::kMarksTooEarly)) Word(heap_.next[block]).store(kOfTheProgram, kOrder);
  Word(heap_.list).store(next, kOrder);
  hand_out(self, block);
  Word(heap_.next[block]).store(kOfTheProgram, kOrder);  // which may be the program's first write to it
}

void LeaseWorld::free_one(Thread* self) {
  uint32_t block = 1;
  while (block <= kBlocks && holder_[block] != self) ++block;
  if (block > kBlocks) return;
  if (heap_.next[block] != kOfTheProgram) Scheduler::fail(named(block) + " was changed while it was in use");
  if (remote::AtomicRef<uint16_t>(self->number).load(kOrder) != kNumber) return put_back(self, block);
  const uint32_t first = Word(heap_.freed).load(kOrder);
  if (!has(LeaseFault::kLinksTooLate)) Word(heap_.next[block]).store(first, kOrder);
  bool is_last = false;
  const auto count = [&] { is_last = Word(heap_.used).fetch_add(UINT32_MAX, kOrder) == 1; };
  if (plan_.counts_first) count();
  Word(heap_.freed).store(block, kOrder);
  if (has(LeaseFault::kLinksTooLate)) Word(heap_.next[block]).store(first, kOrder);
  holder_[block] = nullptr;
  if (!plan_.counts_first) count();
  if (is_last) settle(self);
}

// What was freed of the slab becomes the list; or else the blocks of a hole do.
void LeaseWorld::allocate_slow(Thread* self) {
  const OwnHeap own(this, self);
  if (!own) return;
  occupy();
  if (heap_.list == 0 && heap_.freed != 0) {
    heap_.list = std::exchange(heap_.freed, 0);
    for (uint32_t block = heap_.list; block != 0 && block <= kBlocks; block = heap_.next[block]) ++heap_.used;
  }
  for (uint32_t block = kBlocks; heap_.list == 0 && block > 0; --block) {
    if (!heap_.in_hole[block]) continue;
    heap_.in_hole[block] = false;
    heap_.next[block] = heap_.list;
    heap_.list = block;
    ++heap_.used;
    if (block % kBlocksInAPage == 1) break;
  }
  if (const uint32_t block = heap_.list; block != 0 && block <= kBlocks) {
    heap_.list = std::exchange(heap_.next[block], kOfTheProgram);
    hand_out(self, block);
  }
  vacate();
}

void LeaseWorld::put_back(Thread* self, uint32_t block) {
  const OwnHeap own(this, self);
  occupy();
  if (heap_.next[block] != kOfTheProgram) Scheduler::fail(named(block) + " was changed while it was in use");
  heap_.next[block] = std::exchange(heap_.freed, block);
  holder_[block] = nullptr;
  --heap_.used;
  vacate();
}

void LeaseWorld::settle(Thread* self, bool ends) {
  OwnHeap own(this, self);
  if (!own) return;
  occupy();
  vacate();
  if (!ends) own.never_ends();
}

void LeaseWorld::come_back(Thread* self) {
  Heap* const heap = self->own;
  remote::Guard guard(heap->lock);
  writing_ = self;
  const bool taken = heap->lease.come_back(heap, kNumber);
  writing_ = nullptr;
  if (taken) end_aside();
}

// As in core/holes.cpp.
void LeaseWorld::end_aside() {
  occupy();
  if (std::exchange(heap_.aside, false)) {
    const uint32_t freed = heap_.freed;
    if (freed != 0 && !has(LeaseFault::kForgetsTheLateFree)) {
      heap_.next[freed] = heap_.kept;
    } else {
      heap_.freed = heap_.kept;
    }
    if (heap_.ready != 0) {
      if (heap_.list == heap_.ready) {
        heap_.next[heap_.list] = 0;
      } else if (!has(LeaseFault::kForgetsTheLateMalloc)) {
        heap_.list = 0;
      }
      if (!has(LeaseFault::kCounts)) heap_.used -= heap_.from_ready;
    }
  }
  vacate();
}

void LeaseWorld::leave_heap(Thread* self) {
  if (has(LeaseFault::kLeavesWithoutTheLock)) {
    const OwnHeap own(this, self);
    heap_.lease.end();
  } else if (has(LeaseFault::kLeavesWithoutEntering)) {
    remote::Guard guard(heap_.lock);
    heap_.lease.end();
  } else {
    const OwnHeap own(this, self);
    remote::Guard guard(heap_.lock);
    heap_.lease.end();
  }
  self->own = &none_;
  writing_ = self;
  remote::AtomicRef<Heap*>(self->mine).store(&none_, kOrder);
  remote::AtomicRef<uint16_t>(self->number).store(kNoNumber, kOrder);
  writing_ = nullptr;
  self->may_be_reached = false;
  // What it has goes on to the next thread.
  occupy();
  for (const Thread*& holder : holder_) {
    if (holder == self) holder = nullptr;
  }
  vacate();
  Scheduler::step(&pool_empty_, true);
  Scheduler::trace("puts the heap into the pool");
  pool_empty_ = false;
}

void LeaseWorld::start(Thread* self) {
  Scheduler::step(&pool_empty_, true, &pool_empty_);
  Scheduler::trace("takes the heap from the pool");
  pool_empty_ = true;
  occupy();
  for (uint32_t block = 1; block <= kBlocks; ++block) {
    if (heap_.next[block] == kOfTheProgram) holder_[block] = self;
  }
  vacate();
  self->own = &heap_;
  self->may_be_reached = true;
  writing_ = self;
  remote::AtomicRef<uint16_t>(self->number).store(kNumber, kOrder);
  remote::AtomicRef<Heap*>(self->mine).store(&heap_, kOrder);
  writing_ = nullptr;
  remote::Guard guard(heap_.lock);
  heap_.lease.begin(&self->mine, &self->number, self->id);
}

// Not while somebody takes the heap: who has looked whether the thread exists counts on it until the heap is taken.
void LeaseWorld::vanish(Thread* self) {
  remote::Guard guard(heap_.lock);
  Scheduler::trace("vanishes");
  self->vanished = true;
}

// --- whoever takes the heap -----------------------------------------------------------------------------------------

// front/thread_heap.cpp: give_back_of.
void LeaseWorld::take() {
  remote::Guard guard(heap_.lock);
  if (heap_.lease.is_taken()) return;
  barrier_passed_ = false;
  const auto exists = [this](long id) { return thread_exists(id); };
  const auto barrier = [this] { return barrier_in_all_threads() || has(LeaseFault::kGoesOnWithoutTheBarrier); };
  if (!heap_.lease.take(&heap_, kNumber, &none_, kNoNumber, exists, barrier)) return;
  occupy();
  if (!barrier_passed_) Scheduler::fail("the heap was taken, and not all threads have passed a barrier");
  make_holes_aside();
  vacate();
}

bool LeaseWorld::thread_exists(long id) {
  for (const Thread& thread : threads_) {
    if (thread.id == id && thread.own == &heap_) return !thread.vanished;
  }
  Scheduler::fail("somebody asked after a thread that does not have the heap");
  return true;
}

bool LeaseWorld::barrier_in_all_threads() {
  if (!plan_.has_barrier) return false;
  Scheduler::step(&barrier_, true);
  Scheduler::trace("has all threads pass a barrier");
  barrier_passed_ = true;
  return true;
}

// Heap::make_holes_aside and that of core/holes.cpp.
void LeaseWorld::make_holes_aside() {
  heap_.kept = Word(heap_.freed).load(kOrder);
  const uint32_t first = Word(heap_.list).load(kOrder);
  const uint32_t word = first != 0 ? Word(heap_.next[first]).load(kOrder) : 0;
  if (!barrier_in_all_threads()) return;
  uint32_t second = word;
  if (first == 0 || (!has(LeaseFault::kDoesNotLookAgain) && Word(heap_.list).load(kOrder) != first)) second = 0;
  if (heap_.kept == 0 && second == 0) return;

  Blocks free = {};
  uint32_t freed = heap_.kept;
  add_list(&free, freed);
  Blocks before = free;
  add_list(&free, second);
  uint32_t from_ready = 0;
  for (uint32_t block = 1; block <= kBlocks; ++block) from_ready += free[block] && !before[block];
  if (has(LeaseFault::kTakesTheFirstToo) && second != 0) free[first] = true;

  // Pages of which all blocks are free, or in a hole already.
  Blocks holes = {};
  bool any = false;
  for (uint32_t page = 1; page <= kBlocks; page += kBlocksInAPage) {
    if (!free[page] || !free[page + 1]) continue;
    for (uint32_t block = page; block < page + kBlocksInAPage; ++block) {
      holes[block] = heap_.in_hole[block] = true;
      free[block] = false;
    }
    any = true;
  }
  if (!any) return;
  heap_.kept = link(free);
  heap_.ready = second != 0 ? first : 0;
  heap_.from_ready = from_ready;
  heap_.aside = true;
  if (has(LeaseFault::kCounts)) Word(heap_.used).store(Word(heap_.used).load(kOrder) - from_ready, kOrder);
  if (has(LeaseFault::kOverwritesWhatIsFreed)) {
    Word(heap_.freed).store(0, kOrder);
  } else if (!has(LeaseFault::kLeavesTheListAsItIs)) {
    Word(heap_.freed).compare_exchange_weak(freed, 0, kOrder, kOrder);
  }
  purge(holes);
}

void LeaseWorld::add_list(Blocks* free, uint32_t block) {
  for (; block != 0; block = Word(heap_.next[block]).load(kOrder)) {
    if (block > kBlocks) {
      Scheduler::fail("a list leads to what a program has written");
      Scheduler::stop_thread();
    }
    if ((*free)[block]) {
      Scheduler::fail(named(block) + " is in two lists");
      Scheduler::stop_thread();
    }
    (*free)[block] = true;
  }
}

uint32_t LeaseWorld::link(const Blocks& free) {
  uint32_t list = 0;
  for (uint32_t block = kBlocks; block > 0; --block) {
    if (!free[block]) continue;
    Word(heap_.next[block]).store(list, kOrder);
    list = block;
  }
  return list;
}

void LeaseWorld::purge(const Blocks& holes) {
  for (uint32_t block = 1; block <= kBlocks; ++block) {
    if (!holes[block]) continue;
    Word(heap_.next[block]).store(0, kOrder);
    if (holder_[block] != nullptr) Scheduler::fail("the page of " + named(block) + " went back while it was in use");
  }
}

// --- what must hold -------------------------------------------------------------------------------------------------

// Whoever may change all of the heap; what its owner's fast paths do besides is allowed for.
void LeaseWorld::occupy() {
  Scheduler::step(&occupied_, true);
  Scheduler::trace("enters the heap");
  if (occupied_) Scheduler::fail("two threads were in the heap at once");
  occupied_ = true;
}

void LeaseWorld::vacate() {
  Scheduler::step(&occupied_, true);
  occupied_ = false;
}

void LeaseWorld::hand_out(Thread* self, uint32_t block) {
  Scheduler::trace("has " + named(block));
  if (holder_[block] != nullptr) Scheduler::fail(named(block) + " was handed out twice");
  if (heap_.in_hole[block]) Scheduler::fail(named(block) + " was handed out, and lies in a hole");
  holder_[block] = self;
}

void LeaseWorld::reached(const void* place) {
  if (place == nullptr) {
    Scheduler::fail("somebody wrote to the variables of a thread that has no heap");
    Scheduler::stop_thread();
  }
  for (const Thread& thread : threads_) {
    if (thread.vanished && (place == &thread.mine || place == &thread.number))
      Scheduler::fail("somebody wrote to the variables of a thread that has vanished");
    if (!thread.may_be_reached && writing_ != &thread && place == &thread.number)
      Scheduler::fail("somebody wrote to the variables of a thread that has no heap");
  }
}

void LeaseWorld::count_list(uint32_t block, const char* where) {
  for (uint32_t count = 0; block != 0; block = heap_.next[block], ++count) {
    if (block > kBlocks || count > kBlocks)
      return Scheduler::fail(std::string(where) + " leads to what a program has written, or in a circle");
    ++places_[block];
    if (heap_.in_hole[block]) Scheduler::fail(named(block) + " is in a list, and lies in a hole");
  }
}

void LeaseWorld::check() {
  Thread* owner = nullptr;
  for (Thread& thread : threads_) {
    if (thread.own != &none_) owner = &thread;
  }
  if (owner != nullptr && owner->vanished) return;  // and nobody has the heap again
  if (owner == nullptr) {
    if (heap_.lease.has_thread()) Scheduler::fail("the heap has a thread that has left it");
  } else if (!heap_.lease.is_taken()) {
    if (owner->mine != &heap_ || owner->number != kNumber) Scheduler::fail("a thread does not find its own heap");
  } else if (owner->mine == &heap_ || owner->number == kNumber) {
    Scheduler::fail("a thread has its heap, which counts as taken");
  } else {
    come_back(owner);
  }
  if (heap_.lease.steps() % 2 != 0) Scheduler::fail("the thread seems to be on a slow path for good");
  if (heap_.aside) Scheduler::fail("the heap has an owner that has not taken back what was put aside");
  count_list(heap_.list, "the list");
  count_list(heap_.freed, "what was freed");
  uint32_t used = 0;
  for (uint32_t block = heap_.list; block != 0 && block <= kBlocks && used <= kBlocks; block = heap_.next[block])
    ++used;
  for (uint32_t block = 1; block <= kBlocks; ++block) {
    const bool in_use = heap_.next[block] == kOfTheProgram;
    if (holder_[block] != nullptr && !in_use) Scheduler::fail(named(block) + " was changed while it was in use");
    used += in_use;
    places_[block] += in_use + heap_.in_hole[block];
    if (places_[block] == 0) Scheduler::fail(named(block) + " is lost");
    if (places_[block] > 1) Scheduler::fail(named(block) + " is in two places");
  }
  if (used != heap_.used) Scheduler::fail("the number of blocks in use is wrong");
}

std::string LeaseWorld::name_of(const void* place) const {
  const auto in = [place](const auto& what) {
    return static_cast<size_t>(static_cast<const char*>(place) - reinterpret_cast<const char*>(&what)) < sizeof what;
  };
  if (in(heap_.lease)) return place == &heap_.lease ? "where the thread has its heap" : "the steps";
  if (in(heap_.next))
    return "the word of " + named(static_cast<uint32_t>(static_cast<const uint32_t*>(place) - heap_.next.data()));
  if (place == &heap_.list) return "the list";
  if (place == &heap_.freed) return "what was freed";
  if (place == &heap_.used) return "the countdown";
  for (const Thread& thread : threads_) {
    if (place == &thread.mine) return "the thread's heap";
    if (place == &thread.number) return "the thread's number";
  }
  return {};
}

}  // namespace

Scheduler::Scenario* make_lease_world(const LeasePlan& plan) { return new LeaseWorld(plan); }

}  // namespace test

std::string remote::name_in_slab(const void* place) { return test::lease_world->name_of(place); }

}  // namespace annex
