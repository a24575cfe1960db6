// Calls that a hardware unit runs: see offload.h.
#include "guest/offload.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace annex::sim {

namespace {

constexpr Address kStackDepth = Address{1} << 20;  // below a call's slot, what is its own
constexpr size_t kLongCall = size_t{1} << 14;      // in blocks; after so many a pause is one of a loop that waits

void add_up(nlohmann::json& sum, const nlohmann::json& one) {
  if (sum.is_null()) sum = nlohmann::json::object();
  for (const auto& [name, value] : one.items()) {
    if (value.is_object()) {
      add_up(sum[name], value);
    } else if (!value.is_array()) {
      const uint64_t before = sum.value(name, uint64_t{0});
      const uint64_t more = value.get<uint64_t>();
      sum[name] = name == "most" ? std::max(before, more) : before + more;
    }
  }
}

}  // namespace

Offload::Offload(const Machine& machine, std::deque<Core>& cores, MemorySystem& memory)
    : memory_(memory),
      pages_(memory.pages()),
      parked_needed_(machine.support_core.used() && machine.support_core.context == "parked"),
      main_cores_(machine.thread_cores()),
      units_(make_units(machine, cores, memory)) {
  // ret, at the end of the main core's stub; and before it, of posix_memalign, the store of the result.
  return_.end = BlockEnd::kReturn;
  return_.instructions = 1;
  return_.slots = 1;
  return_.uops = {{.kind = UopClass::kLoad, .first = true, .sources = {kRsp}, .destinations = {kLoaded}},
                  {.kind = UopClass::kBranch, .fused = true, .sources = {kLoaded}}};
  store_result_.instructions = 1;
  store_result_.slots = 1;
  store_result_.uops = {{.kind = UopClass::kStore, .first = true, .addresses = 1, .sources = {kRdi, kRax}}};
}

unsigned Offload::unit_number(const Core& core) const {
  return static_cast<unsigned>(core.index() * units_.size() / main_cores_);
}

void Offload::park(GuestRegisters& registers) {
  parked_.push_back({.thread_pointer = registers.read(GuestRegister::kThreadPointer),
                     .stack = registers.read(GuestRegister::kRsp) & ~Address{4095}});
}

std::unique_ptr<CapturedCall> Offload::begin(Function function, const Core& core, Address entry, Address slot,
                                             GuestRegisters& registers) {
  const unsigned unit = unit_number(core);
  if (!ready()) {
    ++before_ready_;
    return nullptr;
  }
  if (parked_needed_ && parked_[unit].lent) {
    ++beside_;
    return nullptr;
  }
  auto captured = std::make_unique<CapturedCall>();
  captured->function = function;
  captured->entry = entry;
  captured->slot = slot;
  captured->unit = unit;
  captured->arguments = {registers.read(GuestRegister::kRdi), registers.read(GuestRegister::kRsi),
                         registers.read(GuestRegister::kRdx)};
  if (parked_needed_) {
    captured->own_thread_pointer = registers.read(GuestRegister::kThreadPointer);
    registers.write(GuestRegister::kThreadPointer, parked_[unit].thread_pointer);
    parked_[unit].lent = true;
  }
  return captured;
}

void Offload::record(CapturedCall& captured, const Block& block, std::span<const MemoryAccess> accesses, Address next,
                     Cycles at) {
  const Address stack = parked_needed_ ? parked_[captured.unit].stack : 0;
  const Address result = captured.function == Function::kAllocateInto ? captured.arguments[0] : 0;
  moved_.clear();
  for (MemoryAccess access : accesses) {
    if (access.store && access.address == result) continue;
    const Address below = captured.slot + 8 - access.address;
    if (captured.slot != 0 && stack != 0 && below - 1 < kStackDepth) access.address = stack - below;
    if (!access.prefetch) pages_.touch_ahead(access.address, at, Origin::kAllocator);
    moved_.push_back(access);
  }
  pages_.touch_ahead(block.start, at, Origin::kAllocator);
  captured.call.add(block, moved_, next);
}

Offload::Spent Offload::spent(const Core& core) const {
  const PrivateCaches& caches = memory_.caches(core.index());
  const CacheStatistics& last = caches.l2 ? caches.l2->statistics : caches.l1d.statistics;
  const auto& misses = last.misses[index_of(Origin::kAllocator)];
  return {core.statistics().of(Origin::kAllocator).atomics,
          misses[index_of(Access::kLoad)] + misses[index_of(Access::kStore)]};
}

void Offload::add_since(const Spent& before, const Core& core) {
  const Spent now = spent(core);
  by_stubs_.atomics += now.atomics - before.atomics;
  by_stubs_.misses += now.misses - before.misses;
}

bool Offload::spins(const CapturedCall& captured, const Block& block) {
  return captured.call.steps() > kLongCall &&
         std::any_of(block.uops.begin(), block.uops.end(), [](const Uop& uop) { return uop.kind == UopClass::kPause; });
}

void Offload::give_up(CapturedCall& captured, Core& core) {
  ++given_up_;
  captured.recording = false;
  captured.call.run(core);
  captured.call = {};
}

void Offload::restore(CapturedCall& captured, GuestRegisters& registers) {
  if (captured.own_thread_pointer == 0) return;
  registers.write(GuestRegister::kThreadPointer, captured.own_thread_pointer);
  parked_[captured.unit].lent = false;
}

void Offload::conclude(CapturedCall& captured, Address result) {
  Call::Facts& facts = captured.call.facts;
  const auto& [first, second, third] = captured.arguments;
  const auto times = [](uint64_t a, uint64_t b) { return b != 0 && a > ~uint64_t{0} / b ? ~uint64_t{0} : a * b; };
  facts = {.plain = true, .allocates = needs_answer(captured.function)};
  if (facts.allocates) facts.result = result;
  switch (captured.function) {
    case Function::kAllocate:
      facts.bytes = first;
      break;
    case Function::kClear:
      facts.bytes = times(first, second);
      break;
    case Function::kFree:
      facts.freed = first;
      break;
    case Function::kReallocate:
      facts.bytes = second;
      facts.freed = first;
      break;
    case Function::kReallocateArray:
      facts.bytes = times(second, third);
      facts.freed = first;
      break;
    default:
      facts.plain = false;
  }
}

bool Offload::served(CapturedCall& captured, Core& core) {
  if (unit_of(captured).serves(captured.call.facts)) return true;
  memory_.run_late(core.index(), true);
  captured.call.run(core);
  memory_.run_late(core.index(), false);
  // What the call gave back is resident no more, and no translation buffer may know it.
  captured.call.each([&](const Call::Step&, std::span<const MemoryAccess> accesses) {
    for (const MemoryAccess& access : accesses) {
      if (!pages_.resident(access.address)) memory_.shoot_down(access.address, access.address + 1);
    }
  });
  over(captured, core);
  return false;
}

uint64_t Offload::ask(CapturedCall& captured, Core& core, Call& data) {
  // Of calloc and realloc, the blocks that write the program's data.
  const Call::Facts& facts = captured.call.facts;
  const Address result = facts.result;
  const bool writes = captured.function == Function::kClear || captured.function == Function::kReallocate ||
                      captured.function == Function::kReallocateArray;
  if (result != 0 && writes && facts.bytes > 0) {
    data = captured.call.split([&](const Call::Step&, std::span<const MemoryAccess> accesses) {
      return std::any_of(accesses.begin(), accesses.end(), [&](const MemoryAccess& a) {
        return a.store && !a.prefetch && a.address - result < facts.bytes;
      });
    });
    data_steps_ += data.steps();
  }
  const Service service = service_of(captured.function);
  const Spent before = spent(core);
  const uint64_t number = unit_of(captured).ask(core, service, captured.entry, std::move(captured.call));
  add_since(before, core);
  return number;
}

void Offload::answer(const CapturedCall& captured, Core& core, Cycles when, const Call& data, Address next) {
  const Spent before = spent(core);
  if (needs_answer(captured.function)) unit_of(captured).have_answer(core, when);
  add_since(before, core);
  data.run(core);
  return_.start = return_.last = captured.entry + 4;
  return_.fall_through = captured.entry + 5;
  if (captured.function == Function::kAllocateInto) {
    store_result_.start = store_result_.last = captured.entry + 3;
    store_result_.fall_through = return_.start;
    const MemoryAccess result = {.address = captured.arguments[0], .instruction = 0, .bytes = 8, .store = true};
    core.run(store_result_, {&result, 1}, return_.start, Origin::kAllocator);
  }
  const Spent with_data = spent(core);
  const MemoryAccess slot = {.address = captured.slot, .instruction = 0, .bytes = 8, .store = false};
  core.run(return_, {&slot, captured.slot != 0 ? size_t{1} : size_t{0}}, next, Origin::kAllocator);
  add_since(with_data, core);
}

void Offload::finish() {
  for (const auto& unit : units_) unit->advance(kNoTime - 1);
}

void Offload::describe(nlohmann::json& results) const {
  // The sums of all, and each.
  nlohmann::json each = nlohmann::json::array();
  nlohmann::json& out = results[units_.front()->name()];
  for (const auto& unit : units_) {
    unit->describe(each.emplace_back());
    add_up(out, each.back());
  }
  if (each.front().contains("core")) out["core"] = each.front()["core"];  // the first one's number
  out["each"] = std::move(each);
  out["at_their_own_cores"] = {
      {"before_the_parked_thread", before_ready_}, {"beside_a_waiting_one", beside_}, {"waited", given_up_}};
  out["data_steps"] = data_steps_;
  out["stubs"] = {{"atomics", by_stubs_.atomics}, {"misses", by_stubs_.misses}};
}

}  // namespace annex::sim
