// The region of interest: see region.h.
#include "guest/region.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace annex::sim {

namespace {

using Json = nlohmann::json;

// No counts.
bool is_state(std::string_view name) {
  static constexpr std::array<std::string_view, 11> kStates = {"machine", "files", "threads",  "core",
                                                               "below",   "class", "resident", "peak_resident",
                                                               "mapped",  "most",  "classes"};
  return std::ranges::find(kStates, name) != kStates.end();
}

// What names an entry of a list that has only those which occurred; empty: it has its place.
const char* key_of(const Json& entry) {
  for (const char* key : {"below", "class"}) {
    if (entry.is_object() && entry.contains(key)) return key;
  }
  return "";
}

const Json* with_key(const Json& list, const Json& entry) {
  const char* key = key_of(entry);
  for (const Json& other : list) {
    if (other.at(key) == entry.at(key)) return &other;
  }
  return nullptr;
}

// later + sign * other, of each count; what isn't one is later's. Where either has nothing, that is zero.
Json combined(const Json& later, const Json& other, int sign) {
  if (later.is_object()) {
    Json result = later;
    for (const auto& [name, value] : later.items()) {
      if (is_state(name) || !other.contains(name)) continue;
      result[name] = combined(value, other[name], sign);
    }
    for (const auto& [name, value] : other.items()) {
      if (!later.contains(name)) result[name] = value;  // of one of two regions: an earlier count is in a later one
    }
    return result;
  }
  if (later.is_array()) {
    Json result = Json::array();
    for (size_t i = 0; i < later.size(); ++i) {
      const bool keyed = *key_of(later[i]) != '\0';
      const Json* const same = keyed ? with_key(other, later[i]) : i < other.size() ? &other[i] : nullptr;
      result.push_back(same != nullptr ? combined(later[i], *same, sign) : later[i]);
    }
    for (const Json& entry : other) {
      if (*key_of(entry) != '\0' && with_key(later, entry) == nullptr) result.push_back(entry);
    }
    return result;
  }
  if (later.is_number_float()) return later.get<double>() + sign * other.get<double>();
  if (!later.is_number()) return later;
  const int64_t sum = later.get<int64_t>() + sign * other.get<int64_t>();
  return sum < 0 ? Json(sum) : Json(static_cast<uint64_t>(sum));
}

// Entries of lists of those that occurred, which did not.
void drop_empty(Json& at) {
  if (at.is_array()) {
    std::erase_if(at.get_ref<Json::array_t&>(), [](const Json& entry) {
      return *key_of(entry) != '\0' && entry.value("calls", entry.value("blocks", uint64_t{1})) == 0;
    });
  }
  if (at.is_structured()) {
    for (Json& inner : at) drop_empty(inner);
  }
}

constexpr const char* kMean = "average_resident";

// With sums in place of means, which can be added and taken from each other.
Json with_sums(Json counted) {
  Json& mean = counted["memory"]["pages"][kMean];
  mean = mean.get<double>() * counted["cycles"].get<double>();
  return counted;
}

Json with_means(Json sums) {
  Json& mean = sums["memory"]["pages"][kMean];
  mean = mean.get<double>() / std::max(sums["cycles"].get<double>(), 1.0);
  for (Json& core : sums["cores"]) {
    const double busy = core["busy_cycles"].get<double>();
    core["ipc"] = busy > 0 ? core["instructions"].get<double>() / busy : 0.0;
  }
  drop_empty(sums);
  return sums;
}

}  // namespace

Region::Region(std::function<Json()> count) : count_(std::move(count)) {}

Json Region::gained(const Json& later, const Json& earlier) {
  return with_means(combined(with_sums(later), with_sums(earlier), -1));
}

Json Region::together(const Json& first, const Json& second) {
  return with_means(combined(with_sums(second), with_sums(first), 1));
}

void Region::begin() {
  before_ = count_();
  if (regions_++ == 0) {
    instructions_before_ = before_["instructions"];
    calls_before_ = before_["allocator"]["calls"];
  }
  inside_ = true;
}

void Region::end() {
  sum_ = sum();
  inside_ = false;
}

Json Region::sum() const {
  if (!inside_) return sum_;
  const Json gains = gained(count_(), before_);
  return sum_.is_null() ? gains : together(sum_, gains);
}

Json Region::results() const {
  const Json all = count_();
  if (regions_ == 0) {
    Json none = gained(all, all);
    none["region"] = {{"regions", 0}};
    return none;
  }
  Json result = sum();
  const auto left_out = [](uint64_t before, uint64_t whole, uint64_t inside) {
    return Json{{"before", before}, {"after", whole - before - inside}};
  };
  result["region"] = {
      {"regions", regions_},
      {"instructions_left_out", left_out(instructions_before_, all["instructions"], result["instructions"])},
      {"calls_left_out", left_out(calls_before_, all["allocator"]["calls"], result["allocator"]["calls"])}};
  return result;
}

}  // namespace annex::sim
