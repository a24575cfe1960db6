// A machine's parameters: names, and what must hold between them.
#include "machine/parameters.h"

#include <fmt/format.h>

#include <bit>

namespace annex::sim {

const char* name_of(Cause cause) {
  static constexpr const char* kNames[kCauses] = {"base",       "l1",          "l2",    "llc",    "dram",
                                                  "coherence",  "tlb",         "fetch", "branch", "atomic",
                                                  "page_fault", "system_call", "idle"};
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

std::vector<std::string> problems_of(const Machine& machine) {
  std::vector<std::string> problems;
  const auto cache = [&](const char* name, const CacheParameters& c) {
    const uint64_t set = uint64_t{c.ways} << kLineShift;
    if (c.bytes % set != 0 || !std::has_single_bit(c.bytes / set)) {
      problems.push_back(
          fmt::format("{}: bytes = {} is not a power of two of sets of {} ways x {} bytes; {} or {} would be", name,
                      c.bytes, c.ways, 1 << kLineShift, set * std::bit_floor(std::max<uint64_t>(c.bytes / set, 1)),
                      set * std::bit_ceil(c.bytes / set + 1)));
    }
  };
  const auto tlb = [&](const char* name, const TlbParameters& t) {
    if (t.entries % t.ways != 0 || !std::has_single_bit(t.entries / t.ways)) {
      problems.push_back(
          fmt::format("{}: entries = {} is not a power of two of sets of {} ways", name, t.entries, t.ways));
    }
  };
  const auto power = [&](const char* name, uint64_t value) {
    if (!std::has_single_bit(value)) problems.push_back(fmt::format("{} = {} is not a power of two", name, value));
  };
  cache("l1i", machine.l1i);
  cache("l1d", machine.l1d);
  cache("l2", machine.l2);
  cache("llc", machine.llc);
  tlb("itlb", machine.itlb);
  tlb("dtlb", machine.dtlb);
  tlb("stlb", machine.stlb);
  power("predictor.btb", machine.predictor.btb);
  power("dram.channels", machine.dram.channels);
  power("dram.ranks", machine.dram.ranks);
  power("dram.banks", machine.dram.banks);
  power("dram.row_bytes", machine.dram.row_bytes);
  if (machine.l2.bytes < machine.l1i.bytes + machine.l1d.bytes) {
    problems.push_back(fmt::format("l2: bytes = {} is less than l1i and l1d together ({}), which it must contain",
                                   machine.l2.bytes, machine.l1i.bytes + machine.l1d.bytes));
  }
  if (machine.llc.bytes < machine.l2.bytes * machine.cores) {
    problems.push_back(
        fmt::format("llc: bytes = {} is less than the l2 of {} cores together ({}), which it must contain",
                    machine.llc.bytes, machine.cores, machine.l2.bytes * machine.cores));
  }
  if (machine.core.load_queue > machine.core.rob) problems.push_back("core: load_queue is larger than rob");
  return problems;
}

}  // namespace annex::sim
