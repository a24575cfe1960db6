// Calls that a hardware unit runs: see offload.h.
#include "guest/offload.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace annex::sim {

namespace {

constexpr Register kRax = kFirstInteger;
constexpr Register kRsp = kFirstInteger + 4;
constexpr Register kRdi = kFirstInteger + 7;
constexpr Address kStackDepth = Address{1} << 20;  // below a call's slot, what is its own

}  // namespace

Offload::Offload(const Machine& machine, std::deque<Core>& cores, MemorySystem& memory)
    : pages_(memory.pages()),
      parked_needed_(machine.support_core.context == "parked"),
      unit_(machine.support_core, machine.thread_cores(), cores[machine.first_of(kSupportCore)], memory) {
  // ret, at the end of the main core's stub.
  return_.end = BlockEnd::kReturn;
  return_.instructions = 1;
  return_.slots = 1;
  return_.uops = {{.kind = UopClass::kLoad, .first = true, .sources = {kRsp}, .destinations = {kLoaded}},
                  {.kind = UopClass::kBranch, .fused = true, .sources = {kLoaded}}};
}

void Offload::park(GuestRegisters registers) {
  thread_pointer_ = at(registers, GuestRegister::kThreadPointer);
  stack_ = at(registers, GuestRegister::kRsp) & ~Address{4095};
}

std::unique_ptr<CapturedCall> Offload::begin(Function function, Address entry, Address slot, GuestRegisters registers) {
  if (!ready()) {
    ++before_ready_;
    return nullptr;
  }
  if (lent_) {
    ++beside_;
    return nullptr;
  }
  auto captured = std::make_unique<CapturedCall>();
  captured->function = function;
  captured->entry = entry;
  captured->slot = slot;
  captured->arguments = {at(registers, GuestRegister::kRdi), at(registers, GuestRegister::kRsi)};
  if (parked_needed_) {
    captured->own_thread_pointer = at(registers, GuestRegister::kThreadPointer);
    at(registers, GuestRegister::kThreadPointer) = thread_pointer_;
    lent_ = true;
  }
  return captured;
}

void Offload::record(CapturedCall& captured, const Block& block, std::span<const MemoryAccess> accesses, Address next,
                     Cycles at) {
  moved_.assign(accesses.begin(), accesses.end());
  for (MemoryAccess& access : moved_) {
    const Address below = captured.slot + 8 - access.address;
    if (captured.slot != 0 && stack_ != 0 && below - 1 < kStackDepth) access.address = stack_ - below;
    pages_.touch_ahead(access.address, at, Origin::kAllocator);
  }
  pages_.touch_ahead(block.start, at, Origin::kAllocator);
  captured.call.add(block, moved_, next);
}

void Offload::give_up(CapturedCall& captured, Core& core) {
  ++given_up_;
  captured.recording = false;
  captured.call.run(core);
  captured.call = {};
}

void Offload::restore(CapturedCall& captured, GuestRegisters registers) {
  if (captured.own_thread_pointer == 0) return;
  at(registers, GuestRegister::kThreadPointer) = captured.own_thread_pointer;
  lent_ = false;
}

uint64_t Offload::ask(CapturedCall& captured, Core& core, Address result, Call& data) {
  // Of calloc and realloc, the blocks that write the program's data.
  const auto& [first, second] = captured.arguments;
  const uint64_t bytes = captured.function == Function::kClear        ? first * second
                         : captured.function == Function::kReallocate ? second
                                                                      : 0;
  if (result != 0 && bytes > 0) {
    data = captured.call.split([&](const Call::Step&, std::span<const MemoryAccess> accesses) {
      return std::any_of(accesses.begin(), accesses.end(),
                         [&](const MemoryAccess& a) { return a.store && a.address - result < bytes; });
    });
    data_steps_ += data.steps();
  }
  const Cycles issued = core.ask_unit(captured.entry, kRdi, Origin::kAllocator);
  const Service service = needs_answer(captured.function) ? Service::kAllocate : Service::kFree;
  const uint64_t number = unit_.request(service, core.index(), issued, std::move(captured.call));
  if (service == Service::kFree) core.answer(kNoRegister, issued + 1, Cause::kBase);
  unit_.advance(unit_.arrival(issued));
  return number;
}

void Offload::answer(const CapturedCall& captured, Core& core, Cycles when, const Call& data, Address next) {
  if (needs_answer(captured.function)) core.answer(kRax, when, Cause::kUnit);
  data.run(core);
  return_.start = return_.last = captured.entry + 4;
  return_.fall_through = captured.entry + 5;
  const MemoryAccess slot = {.address = captured.slot, .instruction = 0, .bytes = 8, .store = false};
  core.run(return_, {&slot, captured.slot != 0 ? size_t{1} : size_t{0}}, next, Origin::kAllocator);
}

void Offload::describe(nlohmann::json& out) const {
  unit_.describe(out);
  out["at_their_own_cores"] = {
      {"before_the_parked_thread", before_ready_}, {"beside_a_waiting_one", beside_}, {"waited", given_up_}};
  out["data_steps"] = data_steps_;
}

}  // namespace annex::sim
