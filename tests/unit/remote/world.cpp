// A heap and its slabs under the scheduler: see world.h.
#include "unit/remote/world.h"

#include <cstring>
#include <utility>

#include "remote/inbox.h"

namespace annex {

namespace test {
namespace {

class World : public Scheduler::Scenario {
 public:
  explicit World(const Plan& plan);
  ~World() override;

  std::vector<Scheduler::Thread> threads() override;
  void check() override;
  void reached(const void* place) override;
  std::string name_in_slab(const void* place) const;
  annex::Slab* slab_at(const void* place);
  char* start_of(const annex::Slab* metadata) { return slab_of(metadata)->memory; }

 private:
  static constexpr size_t kSlabs = 4;
  static constexpr size_t kMostBlocks = 3;

  struct Slab {
    annex::Slab metadata = {};
    alignas(kMinAlignment) char memory[kMostBlocks * kMinAlignment] = {};
    const char* name = "";
    bool sent[kMostBlocks] = {};
    bool back[kMostBlocks] = {};
    uint32_t out = 0;  // blocks that have not come back
    bool gone = false;
    annex::Slab as_left = {};  // the metadata when it was let go of

    Block* block(size_t i) { return reinterpret_cast<Block*>(memory + i * kMinAlignment); }
  };

  // What the inbox knows of the heap.
  struct Receiver {
    World* world;
    bool owns(const annex::Slab* metadata) const { return world->slab_of(metadata) != nullptr; }
    void receive(annex::Slab* metadata, const Chain& chain) const { world->receive(metadata, chain); }
    void let_go(annex::Slab* metadata) const { world->reaped(metadata); }
  };

  void perform(const std::string& operation);
  void send(const std::string& blocks);
  void receive(annex::Slab* metadata, const Chain& chain);
  void reaped(annex::Slab* metadata);
  void flush();
  void let_go(Slab* slab);
  void come_back(Slab* slab, Chain chain);
  void set_state(Slab* slab, SlabState state);
  void enter_heap();
  void leave_heap();
  Slab* slab_of(const annex::Slab* metadata);
  const Slab* slab_around(const void* place) const;

  Plan plan_;
  Slab slabs_[kSlabs];
  // Two messages are a reason to sort, each slab that becomes complete one to reap; one slab is taken in at a time.
  remote::BasicInbox<2, 1, 1> inbox_;
  Slab* current_ = &slabs_[kSlabs - 1];
  bool in_use_ = false;  // the heap, by whoever may touch its lists
  bool pooled_;
};

World* world = nullptr;

World::World(const Plan& plan) : plan_(plan), pooled_(false) {
  world = this;
  struct {
    const char* name;
    SizeClass capacity;
    SlabState state;
  } constexpr kKinds[kSlabs] = {
      {"A", 3, SlabState::kFull},
      {"B", 2, SlabState::kFull},
      {"C", 1, SlabState::kFull},
      {"D", 1, SlabState::kCurrent},
  };
  for (size_t i = 0; i < kSlabs; ++i) {
    slabs_[i].name = kKinds[i].name;
    slabs_[i].out = slabs_[i].metadata.size_class = kKinds[i].capacity;
    slabs_[i].metadata.state = kKinds[i].state;
  }
  for (const std::string& operation : plan_.before) perform(operation);
  if (plan_.pooled) perform("pool");
}

World::~World() { world = nullptr; }

std::vector<Scheduler::Thread> World::threads() {
  std::vector<Scheduler::Thread> threads;
  for (const Program& program : plan_.programs) {
    std::string name;
    for (const std::string& operation : program) name += (name.empty() ? "" : ", ") + operation;
    threads.push_back({name, [this, &program] {
                         for (const std::string& operation : program) perform(operation);
                       }});
  }
  return threads;
}

void World::perform(const std::string& operation) {
  if (operation == "take in") {
    inbox_.take_in_some(Receiver{this});
  } else if (operation == "pool") {
    flush();
    inbox_.enter_pool(Receiver{this});
    pooled_ = true;
  } else if (operation == "unpool") {
    inbox_.leave_pool();
    pooled_ = false;
  } else {
    send(operation);
  }
}

void World::send(const std::string& blocks) {
  const bool to_the_slab = blocks.back() == '!';
  Slab* slab = &slabs_[blocks[0] - 'A'];
  Chain chain = {nullptr, nullptr, 0};
  for (size_t i = blocks.size() - 1 - to_the_slab; i > 0; --i) {
    const size_t number = static_cast<size_t>(blocks[i] - '0');
    Block* block = slab->block(number);
    slab->sent[number] = true;
    block->next = chain.first;
    chain.first = block;
    if (chain.last == nullptr) chain.last = block;
    ++chain.count;
  }
  if (to_the_slab) return inbox_.send(&slab->metadata, slab->memory, chain, Receiver{this});
  Block* message = remote::make_message(chain, slab->memory, nullptr);
  inbox_.post({message, message, 1}, Receiver{this});
}

// What the heap's lists see, as core/heap.cpp deals with it.
void World::receive(annex::Slab* metadata, const Chain& chain) {
  Slab* slab = slab_of(metadata);
  enter_heap();
  come_back(slab, chain);
  if (slab != current_) {
    if (slab->out == 0) {
      let_go(slab);
    } else if (metadata->state == SlabState::kFull) {
      set_state(slab, SlabState::kPartial);
    }
  }
  leave_heap();
}

// By whoever sorts: the batch is left in it.
void World::reaped(annex::Slab* metadata) {
  Slab* slab = slab_of(metadata);
  come_back(slab, remote::take_all(metadata, slab->memory));
  let_go(slab);
}

// The owner puts down the current slab.
void World::flush() {
  enter_heap();
  if (Slab* slab = std::exchange(current_, nullptr)) {
    if (slab->out == 0) {
      let_go(slab);
    } else {
      set_state(slab, SlabState::kFull);
    }
  }
  leave_heap();
}

void World::come_back(Slab* slab, Chain chain) {
  if (chain.count == 0) return Scheduler::fail("a slab without a batch was in the inbox");
  if (slab->gone) return Scheduler::fail("blocks came back to a slab that was let go of");
  Block* block = chain.first;
  for (uint32_t i = 0; i < chain.count; ++i, block = block->next) {
    size_t number = 0;
    while (number < remote::capacity_of(&slab->metadata) && slab->block(number) != block) ++number;
    if (number == remote::capacity_of(&slab->metadata)) return Scheduler::fail("a batch leads out of its slab");
    if (!slab->sent[number] || slab->back[number]) return Scheduler::fail("a block came back that nobody had sent");
    slab->back[number] = true;
    --slab->out;
    if (i + 1 == chain.count && block != chain.last) return Scheduler::fail("a batch's last block is another");
  }
}

void World::let_go(Slab* slab) {
  for (const void* place :
       {static_cast<void*>(&slab->metadata.remote_batch), static_cast<void*>(&slab->metadata.state)}) {
    Scheduler::step(place, true);
  }
  Scheduler::trace(std::string("lets go of ") + slab->name);
  if (slab->gone) Scheduler::fail("a slab was let go of twice");
  if (slab->out != 0) Scheduler::fail("a slab was let go of with blocks in use");
  slab->gone = true;
  slab->as_left = slab->metadata;
}

void World::set_state(Slab* slab, SlabState state) {
  remote::AtomicRef<SlabState>(slab->metadata.state).store(state, std::memory_order_release);
}

void World::enter_heap() {
  Scheduler::step(&in_use_, true);
  Scheduler::trace("enters the heap");
  if (in_use_) Scheduler::fail("two threads were in the heap at once");
  in_use_ = true;
}

void World::leave_heap() {
  Scheduler::step(&in_use_, true);
  in_use_ = false;
}

World::Slab* World::slab_of(const annex::Slab* metadata) {
  for (Slab& slab : slabs_) {
    if (&slab.metadata == metadata) return &slab;
  }
  Scheduler::fail("no slab was in the inbox, but something else");
  Scheduler::stop_thread();
}

const World::Slab* World::slab_around(const void* place) const {
  for (const Slab& slab : slabs_) {
    const char* start = reinterpret_cast<const char*>(&slab);
    if (static_cast<size_t>(static_cast<const char*>(place) - start) < sizeof(Slab)) return &slab;
  }
  return nullptr;
}

annex::Slab* World::slab_at(const void* place) {
  const Slab* slab = slab_around(place);
  return slab != nullptr ? &slabs_[slab - slabs_].metadata : nullptr;
}

void World::reached(const void* place) {
  const Slab* slab = slab_around(place);
  if (slab != nullptr && slab->gone)
    Scheduler::fail(std::string("slab ") + slab->name + " was used after it was let go of");
}

std::string World::name_in_slab(const void* place) const {
  for (const Slab& slab : slabs_) {
    if (place == &slab.metadata) return slab.name;
    if (place == &slab.metadata.remote_batch) return slab.name + std::string("'s batch");
    if (place == &slab.metadata.state) return slab.name + std::string("'s state");
  }
  return {};
}

void World::check() {
  // Whoever has the heap looks into the inbox one day; where nobody has it, nobody does.
  if (!pooled_) {
    while (!inbox_.empty()) perform("take in");
  }
  for (Slab& slab : slabs_) {
    const std::string name = slab.name;
    for (size_t i = 0; i < remote::capacity_of(&slab.metadata); ++i) {
      if (slab.sent[i] && !slab.back[i]) {
        Scheduler::fail("block " + name + std::to_string(i) + " is left to nobody" +
                        (pooled_ ? ": the heap is in the pool" : ""));
      }
    }
    if (slab.out == 0 && !slab.gone && &slab != current_) {
      Scheduler::fail("slab " + name + " is empty and was not let go of");
    }
    if (slab.gone && memcmp(&slab.metadata, &slab.as_left, sizeof(annex::Slab)) != 0) {
      Scheduler::fail("slab " + name + " was written to after it was let go of");
    }
  }
}

}  // namespace

Scheduler::Scenario* make_world(const Plan& plan) { return new World(plan); }

}  // namespace test

// Where the library would end the process.
void die(const char* what, const void*, const Granule*) {
  test::Scheduler::fail(what);
  test::Scheduler::stop_thread();
}

std::string remote::name_in_slab(const void* place) { return test::world->name_in_slab(place); }
annex::Slab* remote::slab_of(const void* place) { return test::world->slab_at(place); }
char* remote::start_of_slab(const annex::Slab* slab) { return test::world->start_of(slab); }

}  // namespace annex
