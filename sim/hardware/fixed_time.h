// A unit that serves any number of calls at once, each in a fixed time: how quick must a unit be? (A bound, of no
// paper; and the example of a unit: docs/hardware-new-unit.md.)
//
// mallocstart and freestart stand in each call's place, as in SpeedMalloc 4.2; the former has its pointer after
// `fixed_time.cycles`. The allocator's own instructions and accesses are charged to nobody.
#pragma once

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "hardware/unit.h"
#include "machine/parameters.h"

namespace annex::sim {

class FixedTime final : public Unit {
 public:
  explicit FixedTime(const FixedTimeParameters& parameters) : cycles_(parameters.cycles) {}

  const char* name() const override { return "fixed_time"; }

  uint64_t ask(Core& main, Service service, Address entry, Call) override {
    const Cycles issued = main.ask_unit(entry, kRdi, Origin::kAllocator);
    ++(service == Service::kAllocate ? mallocs_ : frees_);
    if (service == Service::kAllocate) {
      answers_[++number_] = issued + cycles_;
    } else {
      main.answer(kNoRegister, issued + 1, Cause::kBase);  // it waits for nothing
    }
    return number_;
  }
  std::optional<Cycles> answer(uint64_t number) override {
    const Cycles at = answers_.at(number);
    answers_.erase(number);
    return at;
  }
  void have_answer(Core& main, Cycles when) override { main.answer(kRax, when, Cause::kUnit); }

  void advance(Cycles) override {}  // all is decided when it is asked
  Cycles decides_next() const override { return kNoTime; }

  void describe(nlohmann::json& out) const override { out = {{"mallocs", mallocs_}, {"frees", frees_}}; }

 private:
  const Cycles cycles_;
  uint64_t number_ = 0;
  uint64_t mallocs_ = 0;
  uint64_t frees_ = 0;
  std::unordered_map<uint64_t, Cycles> answers_;
};

}  // namespace annex::sim
