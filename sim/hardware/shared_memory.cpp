// Requests by shared memory: see shared_memory.h.
#include "hardware/shared_memory.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>

namespace annex::sim {

namespace {

constexpr Register kFlag = kR11;
constexpr Address kEntry = 8;  // bytes of a ring's
constexpr Address kPerLine = kLine / kEntry;
constexpr Address kMostEntries = 65536;
constexpr Address kRingOfCore = kMostEntries * kEntry + 4 * kLine;
constexpr Address kLines = kUnitMemory + (Address{1} << 32);
constexpr Address kCode = kUnitMemory + (Address{2} << 32);

// Code of a unit's own: each micro-op an instruction, but those that are locked are one.
Block code(unsigned number, std::initializer_list<Uop> uops, BlockEnd end = BlockEnd::kFallThrough) {
  Block block;
  block.start = block.last = kCode + number * kLine;
  block.fall_through = block.start + 4 * uops.size();
  block.end = end;
  for (Uop uop : uops) {
    const bool same = uop.locked && !block.uops.empty() && block.uops.back().locked;
    if (!same) ++block.instructions;
    uop.first = !same;
    uop.instruction = static_cast<uint16_t>(block.instructions - 1);
    block.slots += takes_slot(uop);
    block.uops.push_back(uop);
  }
  return block;
}

constexpr Uop load(Register to) { return {.kind = UopClass::kLoad, .destinations = {to}}; }
constexpr Uop store(Register from) { return {.kind = UopClass::kStore, .sources = {from}}; }
constexpr Uop compare(Register what) { return {.kind = UopClass::kAlu, .sources = {what}, .destinations = {kFlags}}; }
constexpr Uop kBranch = {.kind = UopClass::kBranch, .fused = true, .sources = {kFlags}};
constexpr Uop kLockedLoad = {.kind = UopClass::kLoad, .locked = true, .destinations = {kLoaded}};
constexpr Uop kLockedStore = {.kind = UopClass::kStore, .locked = true, .sources = {kFlag}};

MemoryAccess access(uint16_t instruction, Address address, bool store) {
  return {.address = address, .instruction = instruction, .bytes = 8, .store = store};
}

}  // namespace

SharedMemory::SharedMemory(const SupportCoreParameters& parameters, Cluster cluster)
    : Channel(kMostEntries, cluster),
      poll_(parameters.poll),
      entries_(parameters.queue),
      locked_(parameters.publish == "locked"),
      flags_(parameters.flags == "two"),
      room_(cluster.cores, parameters.queue),
      put_(cluster.cores),
      got_(cluster.cores),
      came_(2 * cluster.cores),
      read_answer_(code(2, {load(kRax), compare(kRax), kBranch})),
      read_malloc_(code(3, {load(kFlag), compare(kFlag), kBranch, load(kRdi)})),
      read_free_(code(4, {load(kFlag), compare(kFlag), kBranch, load(kRdi)})),
      write_answer_(code(5, {store(kRax)})),
      write_head_(code(6, {store(kFlag)})),
      clear_mailbox_(code(7, {store(kFlag)})) {
  if (locked_) {
    ask_malloc_ = code(0, {store(kRdi), kLockedLoad, kLockedStore, load(kFlag)});
    ask_free_ = code(1, {load(kFlag), store(kRdi), kLockedLoad, kLockedStore});
  } else {
    ask_malloc_ = code(0, {store(kRdi), store(kFlag), load(kFlag)});
    ask_free_ = code(1, {load(kFlag), store(kRdi), store(kFlag)});
  }
  if (!flags_) return;
  if (locked_) {
    ask_malloc_ = code(0, {load(kFlag), compare(kFlag), kBranch, store(kRdi), kLockedLoad, kLockedStore, load(kFlag)});
  } else {
    ask_malloc_ = code(0, {load(kFlag), compare(kFlag), kBranch, store(kRdi), store(kFlag), load(kFlag)});
  }
  read_answer_ = code(2, {load(kRax), compare(kRax), kBranch, store(kFlag)});
}

Address SharedMemory::address_of(Part part, unsigned core, uint64_t entry) const {
  const Address own = kLines + core * kRingOfCore;
  if (part == Part::kRing) return own + 4 * kLine + entry % entries_ * kEntry;
  return own + static_cast<Address>(part) * kLine;
}

Channel::Asked SharedMemory::ask(Core& main, Service service, Address) {
  const unsigned core = main.index();
  const Cycles came = main.resumes();
  const bool allocates = service == Service::kAllocate;
  const Address flag = address_of(allocates ? Part::kMailbox : Part::kTail, core);
  // The argument, where it goes; what says that it is there; and what the main core looks at.
  const Address argument = allocates ? flag + 8 : address_of(Part::kRing, core, put_[place_of(core)]);
  const Address looked_at = address_of(allocates ? Part::kAnswer : Part::kHead, core);
  std::vector<MemoryAccess> accesses;
  uint16_t instruction = 0;
  if (!allocates) accesses.push_back(access(instruction++, looked_at, false));
  if (allocates && flags_) {
    accesses.push_back(access(instruction, flag, false));
    instruction += 3;  // a comparison and a branch
  }
  accesses.push_back(access(instruction++, argument, true));
  if (locked_) accesses.push_back(access(instruction, flag, false));
  accesses.push_back(access(instruction++, flag, true));
  if (allocates) accesses.push_back(access(instruction++, looked_at, false));
  const Block& asks = allocates ? ask_malloc_ : ask_free_;
  main.run(asks, accesses, asks.fall_through, Origin::kAllocator);
  if (!allocates) {
    ++put_[place_of(core)];
    room_.asked(place_of(core));
  }
  return {came, std::max(came, main.written())};
}

void SharedMemory::have_answer(Core& main, Cycles when) {
  if (when > main.now()) main.spend(when - main.now(), Cause::kUnit);
  const Address answer = address_of(Part::kAnswer, main.index());
  const std::array accesses = {access(0, answer, false), access(3, answer, true)};
  main.run(read_answer_, std::span(accesses).first(flags_ ? 2 : 1), read_answer_.fall_through, Origin::kAllocator);
}

void SharedMemory::arrive(CallRequest request, Cycles at) {
  const unsigned from = place_of(request.from);
  const Service service = request.service;
  came_[position_of({from, service})].push_back(at);
  queue_of(service).push(std::move(request), from, at);
}

// The first place that one who looks around from then on finds changed.
SharedMemory::Found SharedMemory::look(Cycles from) const {
  const auto places = static_cast<unsigned>(came_.size());
  const Cycles round = poll_ * places;
  Found first;
  for (unsigned position = 0; position < places; ++position) {
    if (came_[position].empty()) continue;
    const Cycles came = came_[position].front();
    Cycles at = from + (position + places - next_) % places * poll_;
    if (at < came && round > 0) at += (came - at + round - 1) / round * round;
    at = std::max(at, came);
    if (at < first.at) first = {position, at};
  }
  return first;
}

Cycles SharedMemory::next_start(Cycles idle_from) const { return look(idle_from).at; }

CallRequest SharedMemory::take(Cycles idle_from, Cycles at) {
  const unsigned position = look(idle_from).position;
  next_ = (position + 1) % static_cast<unsigned>(came_.size());
  came_[position].pop_front();
  const unsigned core = position / 2;
  const bool frees = position % 2 == 1;
  if (frees) room_.taken(core, at);
  return queue_of(frees ? Service::kFree : Service::kAllocate).take_of(core, at);
}

void SharedMemory::begin(Core& support, const CallRequest& request) {
  const unsigned core = request.from;
  if (request.service == Service::kAllocate) {
    const Address mailbox = address_of(Part::kMailbox, core);
    const std::array reads = {access(0, mailbox, false), access(3, mailbox + 8, false)};
    support.run(read_malloc_, reads, read_malloc_.fall_through, Origin::kAllocator);
    return;
  }
  const std::array reads = {access(0, address_of(Part::kTail, core), false),
                            access(3, address_of(Part::kRing, core, got_[place_of(core)]), false)};
  support.run(read_free_, reads, read_free_.fall_through, Origin::kAllocator);
  if (++got_[place_of(core)] % kPerLine == 0) {
    const MemoryAccess head = access(0, address_of(Part::kHead, core), true);
    support.run(write_head_, {&head, 1}, write_head_.fall_through, Origin::kAllocator);
  }
}

Cycles SharedMemory::answer(Core& support, const CallRequest& request, Cycles) {
  const MemoryAccess result = access(0, address_of(Part::kAnswer, request.from), true);
  support.run(write_answer_, {&result, 1}, write_answer_.fall_through, Origin::kAllocator);
  const Cycles written = support.written();
  if (flags_) {
    const MemoryAccess flag = access(0, address_of(Part::kMailbox, request.from), true);
    support.run(clear_mailbox_, {&flag, 1}, clear_mailbox_.fall_through, Origin::kAllocator);
  }
  return written;
}

}  // namespace annex::sim
