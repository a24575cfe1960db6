// speedscope's own JSON format: a profile for each value over one table of frames.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "profile/formats.h"
#include "profile/frame_table.h"

namespace annex::inspect {

using nlohmann::json;

std::string speedscope(const Profile& profile, Value first) {
  FrameTable table(FrameOf::kFunction);  // speedscope adds up by frame: with lines a function would be many
  std::vector<std::vector<size_t>> stacks;
  for (const Site& site : profile.sites) stacks.push_back(table.stack(profile, site));

  json frames = json::array();
  for (const TableFrame& frame : table.frames()) {
    json one = {{"name", frame.name()}};
    if (frame.line != nullptr && !frame.line->file.empty()) {
      one["file"] = frame.line->file;
      if (frame.line->first_line != 0) one["line"] = frame.line->first_line;
    }
    frames.push_back(std::move(one));
  }
  json profiles = json::array();
  for (size_t value = 0; value < kValueCount; ++value) {
    json samples = json::array(), weights = json::array();
    double sum = 0;
    for (size_t i = 0; i < stacks.size(); ++i) {
      const double weight = profile.sites[i].values[value];
      if (weight <= 0) continue;
      samples.push_back(stacks[i]);
      weights.push_back(weight);
      sum += weight;
    }
    profiles.push_back({{"type", "sampled"},
                        {"name", kValues[value].title},
                        {"unit", in_bytes(static_cast<Value>(value)) ? "bytes" : "none"},
                        {"startValue", 0},
                        {"endValue", sum},
                        {"samples", std::move(samples)},
                        {"weights", std::move(weights)}});
  }
  return json({{"$schema", "https://www.speedscope.app/file-format-schema.json"},
               {"exporter", "annex"},
               {"name", fmt::format("{}[{}]", profile.program, profile.raw.pid)},
               {"activeProfileIndex", static_cast<size_t>(first)},
               {"shared", {{"frames", std::move(frames)}}},
               {"profiles", std::move(profiles)}})
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace annex::inspect
