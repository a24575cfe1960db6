// Makes a profile with names of a raw one: see profile.h.
#include "profile/profile.h"

#include <algorithm>
#include <map>

#include "message.h"
#include "profile/heap.h"
#include "profile/names.h"
#include "profile/symbols.h"

namespace annex::inspect {
namespace {

bool is_annex(const RawProfile& raw, const Frame& frame) {
  if (frame.module == kNoModule) return false;
  const std::string file = base_name(raw.modules[frame.module].path);
  return file.starts_with("libannex") && file.find(".so") != std::string::npos;
}

// The library's own frames say nothing, unless there are no others.
std::vector<Frame> frames_of_program(const RawProfile& raw, const std::vector<Frame>& frames) {
  const auto first =
      std::find_if_not(frames.begin(), frames.end(), [&](const Frame& frame) { return is_annex(raw, frame); });
  return first == frames.end() ? frames : std::vector<Frame>(first, frames.end());
}

void add_sites(Profile* profile) {
  Symbols symbols(profile->raw.modules);
  std::map<std::pair<size_t, uint64_t>, size_t> known;
  for (const RawSite& raw : profile->raw.sites) {
    Site site;
    site.labels = raw.labels;
    site.values[kTotalBytes] = raw.bytes;
    site.values[kTotalBlocks] = raw.objects;
    site.samples = raw.samples;
    site.freed = raw.freed;
    site.lifetimes = raw.lifetimes;
    for (const Frame& frame : frames_of_program(profile->raw, raw.frames)) {
      const auto [place, first] = known.try_emplace({frame.module, frame.return_address}, profile->places.size());
      if (first) profile->places.push_back({frame, symbols.lines_of(frame)});
      site.places.push_back(place->second);
    }
    profile->sites.push_back(std::move(site));
  }
  profile->problems = symbols.problems();
}

}  // namespace

std::vector<const CodeLine*> Profile::lines_of(const Site& site) const {
  std::vector<const CodeLine*> lines;
  for (const size_t place : site.places) {
    for (const CodeLine& line : places[place].lines) lines.push_back(&line);
  }
  return lines;
}

Profile make_profile(RawProfile raw) {
  Profile profile;
  profile.raw = std::move(raw);
  profile.program = base_name(profile.raw.program);
  add_sites(&profile);
  add_live_blocks(&profile);
  for (const Site& site : profile.sites) {
    for (size_t value = 0; value < kValueCount; ++value) profile.sums[value] += site.values[value];
  }
  return profile;
}

Value value_of(const std::string& name) {
  std::string known;
  for (size_t value = 0; value < kValueCount; ++value) {
    if (name == kValues[value].name) return static_cast<Value>(value);
    known += fmt::format("{}{}", value == 0 ? "" : value + 1 < kValueCount ? ", " : " or ", kValues[value].name);
  }
  throw Failure(kUsage, fmt::format("unknown value '{}': {}", name, known));
}

}  // namespace annex::inspect
