// The results of a simulation as JSON.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "guest/simulation.h"
#include "machine/machine_file.h"

namespace annex::sim {

namespace {

using Json = nlohmann::json;

// Adds a group's numbers, "cycles.base" as a table in the table.
template <class Group>
void add(Json& out, const Group& group) {
  Group::each(group, [&](const std::string& name, const auto& value, auto&&...) {
    const size_t dot = name.find('.');
    Json& at = dot == std::string::npos ? out[name] : out[name.substr(0, dot)][name.substr(dot + 1)];
    at = at.is_null() ? Json(value) : Json(at.get<uint64_t>() + value);
  });
}

Json of_calls(const CallStatistics& calls) {
  Json by_cycles = Json::array();
  const auto by_powers = calls.lengths.by_powers();
  for (size_t i = 0; i < by_powers.size(); ++i) {
    if (by_powers[i] == 0) continue;
    by_cycles.push_back({{"below", uint64_t{1} << i}, {"calls", by_powers[i]}});
  }
  Json lengths = Json::array();
  calls.lengths.each([&](Cycles beyond, const CallLengths::Bin& bin) {
    lengths.push_back({{"below", beyond}, {"calls", bin.calls}, {"cycles", bin.cycles}});
  });
  return {{"calls", calls.calls},
          {"instructions", calls.instructions},
          {"cycles", calls.cycles},
          {"kernel_cycles", calls.kernel_cycles},
          {"cycles_in_calls_below_100", calls.lengths.cycles_below(100)},
          {"by_cycles", by_cycles},
          {"lengths", lengths}};
}

}  // namespace

void Simulation::describe(Json& out) {
  out["machine"] = to_json(machine_);
  out["instructions"] = instructions();
  out["cycles"] = cycles();
  out["threads"] = threads_.size();
  out["turns"] = turns_count_;
  out["switches"] = scheduler_.switches();
  memory_.to_json(out["memory"], cycles());

  Json cores = Json::array();
  Json both;  // of all cores
  uint64_t busy = 0;
  for (const Core& core : cores_) {
    Json one = {{"cycles", core.now()}};
    uint64_t instructions = 0;
    const CoreStatistics statistics = core.statistics();
    CoreStatistics::each_group(statistics, [&](const std::string& name, const auto& group, auto&&...) {
      add(one[name], group);
      add(both[name], group);
      instructions += group.instructions;
    });
    const uint64_t worked = core.now() - statistics.cycles(Cause::kIdle);
    one["instructions"] = instructions;
    one["busy_cycles"] = worked;
    one["ipc"] = worked > 0 ? static_cast<double>(instructions) / static_cast<double>(worked) : 0.0;
    busy += worked;
    cores.push_back(one);
  }
  out["cores"] = cores;
  out["all"] = both;
  out["busy_cycles"] = busy;

  static constexpr const char* kNames[] = {"", "allocate", "free", "reallocate", "other"};
  if (offload_ != nullptr) {
    offload_->describe(out);
  }
  if (steps_ != nullptr) steps_->describe(out["mallacc"]);

  Json& allocator = out["allocator"];
  allocator["functions"] = Json::object();
  uint64_t calls = 0;
  for (size_t i = 1; i < calls_.size(); ++i) {
    allocator["functions"][kNames[i]] = of_calls(calls_[i]);
    calls += calls_[i].calls;
  }
  allocator["calls"] = calls;
  allocator["files"] = functions_.files();
  allocator["instructions"] = both["allocator"]["instructions"];
  uint64_t cycles = 0;
  for (const auto& [cause, value] : both["allocator"]["cycles"].items()) {
    if (cause != name_of(Cause::kIdle)) cycles += value.get<uint64_t>();
  }
  allocator["cycles"] = cycles;
  allocator["atomic_cycles"] = both["allocator"]["atomic_cycles"];
  // The papers' cache pollution, of all cores: misses of the L2, and the sum of their times beyond it, in which those
  // that overlap count several times; and what cores waited for them, each cycle once.
  BlameCounts misses;
  BlameCounts times;
  BlameCounts stalls;
  for (unsigned i = 0; i < machine_.all_cores(); ++i) {
    for (size_t blame = 0; blame < kBlames; ++blame) {
      misses.by[blame] += memory_.attribution().misses(i).by[blame];
      times.by[blame] += memory_.attribution().miss_times(i).by[blame];
      const CoreStatistics statistics = cores_[i].statistics();
      for (const ExecutionStatistics& of : statistics.by_origin) {
        stalls.by[blame] += of.miss_stalls.by[blame];
      }
    }
  }
  add(allocator["l2_misses"], misses);
  add(allocator["l2_miss_cycles"], times);
  add(allocator["l2_miss_stalls"], stalls);
}

}  // namespace annex::sim
