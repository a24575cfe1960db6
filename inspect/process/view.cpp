// What annex top shows: see view.h.
#include "process/view.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "process/as_json.h"
#include "process/units.h"

namespace annex::inspect {

namespace {

double growth(const Change& change, uint64_t Snapshot::*bytes, const Snapshot& now) {
  return change.known() ? change.rate(change.before->*bytes, now.*bytes) : 0;
}

nlohmann::ordered_json or_null(const Change& change, double rate) {
  if (!change.known()) return nullptr;
  return std::llround(rate);
}

}  // namespace

const char* name_of(By by) {
  switch (by) {
    case By::kClass:
      return "class";
    case By::kThread:
      return "thread";
    default:
      return "site";
  }
}

void View::look(By by) {
  before_ = std::exchange(now_, std::nullopt);
  now_.emplace();
  now_->heap = take_snapshot(target_, Resident::kAtOnce);
  if (by != By::kSite || profile_rate(target_) == 0) return;
  now_->profile = copy_profile(target_);
  now_->sites = live_by_site(*now_->profile);
}

Change View::change() const {
  if (!before_) return {};
  return {&before_->heap, static_cast<double>(now_->heap.unix_ms - before_->heap.unix_ms) / 1000};
}

Table View::table(By by) const {
  const Change all = change();
  if (by == By::kClass) return class_table(now_->heap, all);
  if (by == By::kThread) return thread_table(now_->heap, all);
  if (!now_->profile) return {"no profile is on in this process (annex profile --attach begins one)", {}};
  // Where no sites were looked at before, none has grown.
  const bool known = before_ && before_->profile;
  return site_table(*now_->profile, now_->sites, known ? before_->sites : LiveBySite(), known ? all : Change());
}

std::string View::head() const {
  const Snapshot& heap = now_->heap;
  const Change all = change();
  std::string text = fmt::format("annex top: {} ({}), annex {}\n", heap.program, heap.process, heap.version);
  text += fmt::format("resident {} {}   peak {}   committed {}   metadata {}\n", in_units(heap.resident),
                      all.text(growth(all, &Snapshot::resident, heap)), in_units(heap.peak_resident),
                      in_units(heap.committed), in_units(heap.metadata));
  text += fmt::format("live {} {}   in {} spans {}   in slabs {}\n", in_units(heap.used),
                      all.text(growth(all, &Snapshot::used, heap)), heap.span_count, in_units(heap.used_spans),
                      in_units(heap.used - heap.used_spans));
  text += fmt::format("free in slabs {} (touched {})   dirty {}   fragmentation {:.1f} %   heaps {}\n",
                      in_units(heap.free_in_slabs()), in_units(heap.free_touched()), in_units(heap.dirty),
                      100 * heap.fragmentation(), heap.heap_count);
  return text;
}

std::string View::text(By by, const char* keys) const {
  const Table rows = table(by);
  std::string text = head() + fmt::format("by {}{}\n\n{}\n", name_of(by), keys, rows.header);
  for (const TableRow& row : rows.rows) text += row.text + "\n";
  return text;
}

std::string View::as_text(By by) const { return text(by, ""); }
std::string View::as_text_with_keys(By by) const { return text(by, " (c class, t thread, s site, q quit)"); }

nlohmann::ordered_json View::as_json(By by) const {
  const Snapshot& heap = now_->heap;
  const Change all = change();
  nlohmann::ordered_json json = {{"schema", "annex-top/1"},
                                 {"by", name_of(by)},
                                 {"seconds", all.known() ? nlohmann::ordered_json(all.seconds) : nullptr},
                                 {"resident_growth", or_null(all, growth(all, &Snapshot::resident, heap))},
                                 {"used_growth", or_null(all, growth(all, &Snapshot::used, heap))},
                                 {"profile", profile_rate(target_) != 0}};
  json["rows"] = nlohmann::ordered_json::array();
  for (const TableRow& row : table(by).rows) {
    json["rows"].push_back({{"name", row.name}, {"used", row.bytes}, {"growth", or_null(all, row.growth)}});
  }
  json["stats"] = inspect::as_json(heap);
  return json;
}

}  // namespace annex::inspect
