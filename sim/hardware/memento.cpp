// Memento+: see memento.h.
#include "hardware/memento.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace annex::sim {

namespace {

template <class Group>
void add(nlohmann::json& to, const Group& group) {
  if (to.is_null()) to = nlohmann::json::object();
  Group::each(group,
              [&](const char* name, uint64_t value, const char*) { to[name] = to.value(name, uint64_t{0}) + value; });
}

}  // namespace

Memento::Memento(const MementoParameters& parameters, unsigned cores, MemorySystem& memory)
    : largest_(parameters.largest),
      page_(parameters.page),
      memory_(memory, parameters.page_allocator == "yes"),
      transfer_(parameters.classes(), memory_) {
  for (unsigned core = 0; core < cores; ++core) allocators_.emplace_back(parameters, core, memory_, transfer_);
}

bool Memento::serves(const Call::Facts& facts) const {
  if (!facts.plain) return false;
  if (facts.freed != 0 && !live_.contains(facts.freed)) return false;
  if (!facts.allocates) return true;
  if (facts.result == 0) return facts.freed != 0 && facts.bytes == 0;  // else there was no memory
  return facts.bytes <= largest_;
}

std::optional<unsigned> Memento::take_back(Address block) {
  const auto found = live_.find(block);
  if (found == live_.end()) return std::nullopt;
  const unsigned size_class = found->second;
  live_.erase(found);
  return size_class;
}

void Memento::ran_at_its_core(const Core& core, const Call::Facts& facts) {
  ++(serves(facts) ? statistics_.waited : statistics_.software);
  if (!facts.plain || facts.freed == 0 || (facts.allocates && facts.result == 0 && facts.bytes > 0)) return;
  ObjectAllocator& own = allocators_[core.index()];
  if (const auto size_class = take_back(facts.freed)) own.free(*size_class, own.taken_up(core.now()));
}

uint64_t Memento::ask(Core& main, Service service, Address entry, Call call) {
  const Call::Facts& facts = call.facts;
  ObjectAllocator& own = allocators_[main.index()];
  const Cycles issued = main.ask_unit(entry, kRdi, Origin::kAllocator);
  const Cycles taken = own.taken_up(issued);
  Cycles had = taken + 1;
  ++statistics_.asked;
  const auto old = take_back(facts.freed);
  if (facts.result != 0) had = allocate(own, main.index(), facts, taken, old);
  if (old && (facts.result == 0 || *old != class_of(facts.bytes))) own.free(*old, own.taken_up(taken));
  if (service == Service::kAllocate) {
    answers_[++number_] = had;
  } else {
    main.answer(kNoRegister, had, taken > issued ? Cause::kUnit : Cause::kBase);
  }
  return number_;
}

Cycles Memento::allocate(ObjectAllocator& own, unsigned core, const Call::Facts& facts, Cycles at,
                         std::optional<unsigned> old) {
  const unsigned size_class = class_of(facts.bytes);
  Cycles had = at;
  if (old == size_class) {
    ++statistics_.resized;
    had = own.look(at);
  } else {
    had = own.allocate(size_class, at);
  }
  if (!live_.insert_or_assign(facts.result, size_class).second) ++statistics_.lost;
  if (!memory_.backed()) return had;
  const Address end = facts.result + (size_class + 1) * 8;
  for (Address page = page_of(facts.result); page <= page_of(end - 1); ++page) {
    if (!memory_.back(core, page << kPageShift, had)) continue;
    ++statistics_.pages;
    had += page_;
  }
  return had;
}

std::optional<Cycles> Memento::answer(uint64_t number) {
  const auto found = answers_.find(number);
  const Cycles at = found->second;
  answers_.erase(found);
  return at;
}

void Memento::have_answer(Core& main, Cycles when) { main.answer(kRax, when, Cause::kUnit); }

void Memento::describe(nlohmann::json& out) const {
  out = nlohmann::json::object();
  add(out, statistics_);
  add(out["transfer"], transfer_.statistics());
  nlohmann::json& cores = out["cores"] = nlohmann::json::array();
  uint64_t kept = 0;
  for (const ObjectAllocator& own : allocators_) {
    nlohmann::json& one = cores.emplace_back();
    add(one, own.statistics());
    one["kept"] = own.kept();
    kept += own.kept();
    add(out, own.statistics());
  }
  out["kept"] = kept;
  out["transfer"]["objects"] = transfer_.objects();
  out["live"] = live_.size();
}

}  // namespace annex::sim
