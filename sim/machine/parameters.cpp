// A machine's parameters: names, and what must hold between them.
#include "machine/parameters.h"

#include <fmt/format.h>

#include <bit>

namespace annex::sim {

const char* name_of(Cause cause) {
  static constexpr const char* kNames[kCauses] = {"base",       "l1",          "l2",    "llc",    "dram",
                                                  "coherence",  "tlb",         "fetch", "branch", "atomic",
                                                  "page_fault", "system_call", "unit",  "idle"};
  return kNames[static_cast<size_t>(cause)];
}

const char* name_of(UopClass kind) {
  static constexpr const char* kNames[kUopClasses] = {"nop",    "alu",    "shift",     "mul",    "div",
                                                      "branch", "load",   "store",     "vector", "fp_add",
                                                      "fp_mul", "fp_div", "microcode", "fence",  "pause"};
  return kNames[static_cast<size_t>(kind)];
}

const char* CoreParameters::source_of(UopClass kind) {
  switch (kind) {
    case UopClass::kLoad:
    case UopClass::kStore:
    case UopClass::kMicrocode:
    case UopClass::kFence:
    case UopClass::kPause:
      return "assumed";
    default:
      return "Agner Fog's tables, Haswell";
  }
}

uint32_t Machine::all_cores() const {
  uint32_t sum = cores;
  for (const OtherCores& kind : others) sum += kind.cores;
  return sum;
}

uint32_t Machine::thread_cores() const {
  uint32_t sum = cores;
  for (const OtherCores& kind : others) sum += kind.run_threads() ? kind.cores : 0;
  return sum;
}

const CoreKind& Machine::kind_of(unsigned core) const {
  uint32_t first = cores;
  if (core < first) return *this;
  for (const OtherCores& kind : others) {
    first += kind.cores;
    if (core < first) return kind;
  }
  return *this;
}

uint32_t Machine::first_of(std::string_view kind) const {
  uint32_t first = cores;
  for (const OtherCores& other : others) {
    if (other.name == kind) break;
    first += other.cores;
  }
  return first;
}

namespace {

using Problems = std::vector<std::string>;

void check_cache(const std::string& name, const CacheParameters& c, Problems& problems) {
  if (c.allocator_ways >= c.ways) {
    problems.push_back(
        fmt::format("{}: allocator_ways = {} leaves none of {} ways to the program", name, c.allocator_ways, c.ways));
  }
  const uint64_t set = uint64_t{c.ways} << kLineShift;
  if (c.bytes != 0 && c.bytes % set == 0 && std::has_single_bit(c.bytes / set)) return;
  problems.push_back(
      fmt::format("{}: bytes = {} is not a power of two of sets of {} ways x {} bytes; {} or {} would be", name,
                  c.bytes, c.ways, 1 << kLineShift, set * std::bit_floor(std::max<uint64_t>(c.bytes / set, 1)),
                  set * std::bit_ceil(c.bytes / set + 1)));
}

void check_tlb(const std::string& name, const TlbParameters& t, Problems& problems) {
  if (t.entries % t.ways == 0 && std::has_single_bit(t.entries / t.ways)) return;
  problems.push_back(fmt::format("{}: entries = {} is not a power of two of sets of {} ways", name, t.entries, t.ways));
}

void check_power(const std::string& name, uint64_t value, Problems& problems) {
  if (!std::has_single_bit(value)) problems.push_back(fmt::format("{} = {} is not a power of two", name, value));
}

// `where`: "" for the main cores, else "kind NAME: ".
void check_kind(const std::string& where, const CoreKind& kind, Problems& problems) {
  check_cache(where + "l1i", kind.l1i, problems);
  check_cache(where + "l1d", kind.l1d, problems);
  if (kind.has_l2()) check_cache(where + "l2", kind.l2, problems);
  check_tlb(where + "itlb", kind.itlb, problems);
  check_tlb(where + "dtlb", kind.dtlb, problems);
  check_tlb(where + "stlb", kind.stlb, problems);
  check_power(where + "predictor.btb", kind.predictor.btb, problems);
  if (kind.has_l2() && kind.l2.bytes < kind.l1i.bytes + kind.l1d.bytes) {
    problems.push_back(fmt::format("{}l2: bytes = {} is less than l1i and l1d together ({}), which it must contain",
                                   where, kind.l2.bytes, kind.l1i.bytes + kind.l1d.bytes));
  }
  if (kind.core.load_queue > kind.core.rob) {
    problems.push_back(fmt::format("{}core: load_queue is larger than rob", where));
  }
}

uint64_t own_bytes(const CoreKind& kind) { return kind.has_l2() ? kind.l2.bytes : kind.l1i.bytes + kind.l1d.bytes; }

}  // namespace

std::vector<std::string> problems_of(const Machine& machine) {
  Problems problems;
  check_kind("", machine, problems);
  uint64_t own = own_bytes(machine) * machine.cores;
  for (const OtherCores& kind : machine.others) {
    check_kind(fmt::format("kind {}: ", kind.name), kind, problems);
    own += own_bytes(kind) * kind.cores;
  }
  check_cache("llc", machine.llc, problems);
  check_power("dram.channels", machine.dram.channels, problems);
  check_power("dram.ranks", machine.dram.ranks, problems);
  check_power("dram.banks", machine.dram.banks, problems);
  check_power("dram.row_bytes", machine.dram.row_bytes, problems);
  if (machine.llc.bytes < own) {
    problems.push_back(
        fmt::format("llc: bytes = {} is less than the caches of {} cores together ({}), which it must "
                    "contain",
                    machine.llc.bytes, machine.all_cores(), own));
  }
  if (machine.support_core.cores > machine.thread_cores()) {
    problems.push_back(fmt::format("support_core: cores = {} is more than the {} cores that they serve",
                                   machine.support_core.cores, machine.thread_cores()));
  }
  if (machine.support_core.used() + machine.fixed_time.used() + machine.memento.used() > 1) {
    problems.emplace_back("support_core, fixed_time and memento: calls can be served by one kind of unit only");
  }
  if (machine.memento.batch > machine.memento.objects) {
    problems.push_back(fmt::format("memento: batch = {} is more than the {} objects that a core keeps",
                                   machine.memento.batch, machine.memento.objects));
  }
  if (machine.mallacc.used() && machine.has_unit() && !machine.support_core.used()) {
    problems.emplace_back("mallacc: not beside a unit that serves whole calls and runs none of their code");
  }
  if (machine.mallacc.used() && machine.support_core.used() && machine.support_core.context != "parked") {
    problems.emplace_back(
        "mallacc: beside support cores only with support_core.context = \"parked\", as its lists are of one heap");
  }
  if (machine.all_cores() > kMaxCores) {
    problems.push_back(fmt::format("{} cores of all kinds, more than {}", machine.all_cores(), kMaxCores));
  }
  return problems;
}

}  // namespace annex::sim
