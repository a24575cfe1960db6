// All that the page shows, as JSON: docs/profiling-formats.md says what each name means.
#include <nlohmann/json.hpp>

#include "profile/formats.h"
#include "profile/frame_table.h"
#include "profile/names.h"

namespace annex::inspect {

using nlohmann::json;

namespace {

json values_of(const Profile& profile) {
  json values = json::array();
  for (size_t value = 0; value < kValueCount; ++value) {
    const ValueKind& kind = kValues[value];
    values.push_back({{"name", kind.name}, {"title", kind.title}, {"unit", kind.unit}, {"sum", profile.sums[value]}});
  }
  return values;
}

json modules_of(const Profile& profile) {
  json modules = json::array();
  for (const Module& module : profile.raw.modules) {
    modules.push_back({{"name", base_name(module.path)}, {"path", module.path}, {"build_id", module.build_id}});
  }
  return modules;
}

json frames_of(const FrameTable& table) {
  json frames = json::array();
  for (const TableFrame& frame : table.frames()) {
    json one = {{"name", frame.name()}, {"short", short_name(frame.name())}};
    if (frame.module != kNoModule) one["module"] = frame.module;
    if (frame.line != nullptr && !frame.line->file.empty()) {
      one["file"] = frame.line->file;
      one["line"] = frame.line->line;
    }
    frames.push_back(std::move(one));
  }
  return frames;
}

json sites_of(const Profile& profile, FrameTable* table) {
  json sites = json::array();
  for (const Site& site : profile.sites) {
    json labels = json::array();
    for (const auto& [key, value] : site.labels) labels.push_back({key, value});
    sites.push_back({{"frames", table->stack(profile, site)},
                     {"labels", std::move(labels)},
                     {"values", site.values},
                     {"freed_without", site.freed_without},
                     {"samples", site.samples},
                     {"freed", site.freed},
                     {"lifetimes", site.lifetimes}});
  }
  return sites;
}

json classes_of(const Profile& profile) {
  json classes = json::array();
  for (const ClassReport& one : profile.classes) {
    classes.push_back({{"size", one.counts.size},
                       {"slabs", one.counts.slabs},
                       {"bytes", one.counts.bytes},
                       {"made", one.counts.made},
                       {"used", one.counts.used},
                       {"live_blocks", one.live_blocks},
                       {"asked", one.asked},
                       {"rounding", one.rounding()},
                       {"fragmentation", one.fragmentation()}});
  }
  return classes;
}

json heap_of(const HeapReport& heap) {
  return {{"resident", heap.resident},
          {"live", heap.live},
          {"rounding", heap.rounding},
          {"dirty", heap.dirty},
          {"metadata", heap.metadata},
          {"free_in_slabs", heap.free_in_slabs},
          {"fragmentation", heap.fragmentation()}};
}

}  // namespace

std::string document(const Profile& profile) {
  FrameTable table(FrameOf::kLine);
  json sites = sites_of(profile, &table);
  const RawProfile& raw = profile.raw;
  return json({{"format", "annex-profile-document 1"},
               {"program", profile.program},
               {"pid", raw.pid},
               {"version", raw.version},
               {"began_ms", raw.began_ms},
               {"written_ms", raw.written_ms},
               {"rate", raw.rate},
               {"page", raw.page},
               {"stats", raw.stats},
               {"problems", profile.problems},
               {"values", values_of(profile)},
               {"heap", heap_of(profile.heap)},
               {"classes", classes_of(profile)},
               {"modules", modules_of(profile)},
               {"frames", frames_of(table)},
               {"sites", std::move(sites)}})
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace annex::inspect
