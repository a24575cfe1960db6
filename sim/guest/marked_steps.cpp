// Steps that the allocator's source marks: see marked_steps.h.
#include "guest/marked_steps.h"

#include <nlohmann/json.hpp>
#include <set>

#include "guest/guest_memory.h"

namespace annex::sim {

namespace {

// No step is that long: something jumped out of it.
constexpr unsigned kMostBlocks = 256;

constexpr bool is_begin(MarkerKind kind) {
  return kind == MarkerKind::kSizeBegin || kind == MarkerKind::kPopBegin || kind == MarkerKind::kPushBegin ||
         kind == MarkerKind::kSampleBegin;
}

constexpr MarkerKind begin_of(MarkerKind end) {
  switch (end) {
    case MarkerKind::kSizeEnd:
    case MarkerKind::kSizeClass:
    case MarkerKind::kSizeAlone:
    case MarkerKind::kSizeLeft:
      return MarkerKind::kSizeBegin;
    case MarkerKind::kPopEnd:
    case MarkerKind::kPopLeft:
      return MarkerKind::kPopBegin;
    case MarkerKind::kPushEnd:
      return MarkerKind::kPushBegin;
    case MarkerKind::kSampleEnd:
    case MarkerKind::kSampleLeft:
      return MarkerKind::kSampleBegin;
    default:
      return MarkerKind::kNone;
  }
}

}  // namespace

MarkedSteps::MarkedSteps(const Machine& machine) : parameters_(machine.mallacc) {
  for (unsigned i = 0; i < machine.all_cores(); ++i) units_.emplace_back(machine.mallacc);
}

MarkedSteps::Who MarkedSteps::who_does(MarkerKind begin) const {
  const std::string& who = begin == MarkerKind::kSizeBegin   ? parameters_.size_class
                           : begin == MarkerKind::kPopBegin  ? parameters_.pop
                           : begin == MarkerKind::kPushBegin ? parameters_.push
                                                             : parameters_.sampling;
  if (who == "free") return Who::kFree;
  return who == "unit" && parameters_.entries > 0 ? Who::kUnit : Who::kSoftware;
}

bool MarkedSteps::come_to(MarkedStep& step, const Block& block, GuestRegisters& registers, Core& core, Origin origin,
                          Call* captured) {
  if (step.again == block.start) {
    step.again = 0;
    return step.left_out;
  }
  if (captured == nullptr && step.core != core.index()) {
    if (step.core != ~0u) units_[core.index()].flush();
    step.core = core.index();
  }
  const auto kind = static_cast<MarkerKind>(block.marker.kind);
  const auto operand = [&](Register in) {
    return Operand{in, registers.read(static_cast<GuestRegister>(in - kFirstInteger))};
  };
  const Operand first = operand(block.marker.first);
  const Operand second = operand(block.marker.second);
  const Mallacc::Place place = {core, block.start, origin, captured};
  if (is_begin(kind)) {
    step.begun = kind;
    step.size_class.reset();
    step.blocks.reset();
    step.left_out = begin(step, kind, place, first, second);
    left_out_ += step.left_out;
    step.blocks_left_out = 0;
    return step.left_out;
  }
  if (const MarkerKind begun = begin_of(kind); begun != MarkerKind::kNone) {
    if (step.begun == begun) end(step, kind, place, first, second);
    step.begun = MarkerKind::kNone;
    return step.left_out = false;
  }
  // Only where pops are the unit's is there anything to keep true.
  if (who_does(MarkerKind::kPopBegin) != Who::kUnit) return false;
  Mallacc& unit = units_[core.index()];
  if (kind == MarkerKind::kPrefetch) {
    const Address next = second.value == 0 ? 0 : read_guest<uint64_t>(second.value).value_or(0);
    unit.prefetch(place, first, second, next);
  } else if (kind == MarkerKind::kDrop) {
    unit.drop(place, first);
  }
  return false;
}

bool MarkedSteps::goes_on(MarkedStep& step, const Block& block) {
  if (step.again == block.start) {
    step.again = 0;
  } else if (block.marker.kind != 0 && begin_of(static_cast<MarkerKind>(block.marker.kind)) == step.begun) {
    step.left_out = false;
  } else if (++step.blocks_left_out > kMostBlocks) {
    ++without_end_;
    step.left_out = false;
    step.begun = MarkerKind::kNone;
  }
  return step.left_out;
}

bool MarkedSteps::begin(MarkedStep& step, MarkerKind kind, const Mallacc::Place& place, Operand first, Operand second) {
  Mallacc& unit = units_[place.core.index()];
  const Who who = who_does(kind);
  step.size = first.value;
  if (who != Who::kUnit) {
    if (kind == MarkerKind::kPushBegin) unit.learn_push(static_cast<uint32_t>(first.value), second.value);
    return who == Who::kFree;
  }
  switch (kind) {
    case MarkerKind::kSizeBegin: {
      step.size_class = unit.look_up(place, first).found;
      return step.size_class.has_value();
    }
    case MarkerKind::kPopBegin: {
      step.blocks = unit.pop(place, first).found;
      return step.blocks.has_value();
    }
    case MarkerKind::kPushBegin:
      unit.push(place, first, second);
      return false;
    default:
      unit.count(place, first);
      return true;
  }
}

void MarkedSteps::end(MarkedStep& step, MarkerKind kind, const Mallacc::Place& place, Operand first, Operand second) {
  if (step.begun == MarkerKind::kSizeBegin) {
    end_size(step, kind, place, first, second);
  } else if (step.begun == MarkerKind::kPopBegin) {
    end_pop(step, kind, place, first, second);
  }
}

void MarkedSteps::end_size(const MarkedStep& step, MarkerKind kind, const Mallacc::Place& place, Operand number,
                           Operand bytes) {
  const bool none = kind == MarkerKind::kSizeLeft;
  const bool knows_bytes = kind == MarkerKind::kSizeEnd;
  const auto is = static_cast<uint32_t>(number.value);
  Mallacc& unit = units_[place.core.index()];
  if (step.size_class) {
    const bool right =
        !none && step.size_class->number == is &&
        (!knows_bytes || static_cast<uint32_t>(step.size_class->bytes) == static_cast<uint32_t>(bytes.value));
    wrong_answers_ += !right;
  }
  if (none) return;
  // An allocator that never asks for the bytes has the unit keep the size: the range grows with it.
  const bool learns = kind != MarkerKind::kSizeClass;
  if (learns) ++blocks_asked_[is];
  const Operand kept =
      knows_bytes ? Operand{bytes.in, static_cast<uint32_t>(bytes.value)} : Operand{.value = step.size};
  const Who who = who_does(MarkerKind::kSizeBegin);
  if (who == Who::kUnit && !step.size_class) {
    if (learns) unit.update(place, step.size, number, kept);
    return;
  }
  if (who != Who::kUnit && learns && who_does(MarkerKind::kPopBegin) == Who::kUnit) {
    unit.learn(step.size, is, kept.value);
  }
  if (who == Who::kSoftware) return;
  has(place, step.begun, number);
  if (knows_bytes) has(place, step.begun, bytes);
}

void MarkedSteps::end_pop(const MarkedStep& step, MarkerKind kind, const Mallacc::Place& place, Operand head,
                          Operand next) {
  const bool empty = kind == MarkerKind::kPopLeft;
  if (step.blocks) wrong_answers_ += empty || step.blocks->head != head.value || step.blocks->next != next.value;
  const bool free = who_does(MarkerKind::kPopBegin) == Who::kFree;
  if (empty || (!free && !step.blocks)) return;
  has(place, step.begun, head);
  has(place, step.begun, next);
}

void MarkedSteps::describe(nlohmann::json& out) const {
  MallaccStatistics sum;
  std::set<uint32_t> classes;
  for (const Mallacc& unit : units_) {
    std::vector<uint64_t> more;
    MallaccStatistics::each(unit.statistics(), [&](const char*, uint64_t value) { more.push_back(value); });
    size_t i = 0;
    MallaccStatistics::each(sum, [&](const char*, uint64_t& value) { value += more[i++]; });
    classes.insert(unit.classes().begin(), unit.classes().end());
  }
  MallaccStatistics::each(sum, [&](const char* name, uint64_t value) { out[name] = value; });
  out["classes"] = classes.size();
  nlohmann::json& by_class = out["blocks_asked"] = nlohmann::json::array();
  for (const auto& [number, blocks] : blocks_asked_) by_class.push_back({{"class", number}, {"blocks", blocks}});
  out["left_out"] = left_out_;
  out["wrong_answers"] = wrong_answers_;
  out["steps_without_end"] = without_end_;
}

}  // namespace annex::sim
