// Tables: see tables.h.
#include "process/tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "process/as_json.h"
#include "process/proc.h"
#include "process/units.h"

namespace annex::inspect {

namespace {

double percent(uint64_t part, uint64_t all) {
  return all == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(all);
}

std::string thread_text(const HeapCounts& heap, pid_t process) {
  if (heap.holder != HeapCounts::Holder::kThread) return holder_name(heap.holder);
  const std::string name = thread_name(process, heap.thread);
  return name.empty() ? fmt::format("{}", heap.thread) : fmt::format("{} {}", heap.thread, name);
}

const HeapCounts* find(const Snapshot& snapshot, uint64_t owner) {
  if (owner == 0) return &snapshot.no_heap;
  const auto found = std::find_if(snapshot.heaps.begin(), snapshot.heaps.end(),
                                  [=](const HeapCounts& heap) { return heap.owner == owner; });
  return found == snapshot.heaps.end() ? nullptr : &*found;
}

}  // namespace

double Change::rate(uint64_t then, uint64_t now) const {
  return known() ? (static_cast<double>(now) - static_cast<double>(then)) / seconds : 0;
}

std::string Change::text(double rate) const { return known() ? change_in_units(rate) + "/s" : "-"; }

Table sorted(Table table) {
  std::stable_sort(table.rows.begin(), table.rows.end(),
                   [](const TableRow& a, const TableRow& b) { return a.bytes > b.bytes; });
  return table;
}

Table class_table(const Snapshot& snapshot, const Change& change) {
  static constexpr char kRow[] = "{:>7} {:>9} {:>12} {:>12} {:>12} {:>12} {:>7} {:>15}";
  Table table = {
      fmt::format(kRow, "block", "slabs", "slabs hold", "used blocks", "live", "free", "in use", "live grows"), {}};
  for (annex::SizeClass c = 0; c < kClasses; ++c) {
    const ClassCounts& counts = snapshot.classes[c];
    const uint64_t size = block_size(c);
    const uint64_t live = counts.used * size;
    const uint64_t then = change.known() ? change.before->classes[c].used * size : 0;
    if (counts.slabs == 0 && then == 0) continue;
    const double growth = change.rate(then, live);
    const uint64_t free = (counts.made - counts.in_holes - counts.used) * size;
    table.rows.push_back(
        {fmt::format("{}", size),
         fmt::format(kRow, size, counts.slabs, in_units(counts.bytes), counts.used, in_units(live), in_units(free),
                     fmt::format("{:.0f} %", percent(live, counts.bytes)), change.text(growth)),
         live, growth});
  }
  return sorted(std::move(table));
}

Table thread_table(const Snapshot& snapshot, const Change& change) {
  static constexpr char kRow[] = "{:<24} {:>9} {:>12} {:>12} {:>7} {:>15}";
  Table table = {fmt::format(kRow, "thread", "slabs", "slabs hold", "live", "in use", "live grows"), {}};
  const auto add = [&](const HeapCounts& heap, const std::string& name) {
    const HeapCounts* before = change.known() ? find(*change.before, heap.owner) : nullptr;
    const double growth = change.rate(before != nullptr ? before->used : 0, heap.used);
    table.rows.push_back({name,
                          fmt::format(kRow, name, heap.slabs, in_units(heap.bytes), in_units(heap.used),
                                      fmt::format("{:.0f} %", percent(heap.used, heap.bytes)), change.text(growth)),
                          heap.used, growth});
  };
  for (const HeapCounts& heap : snapshot.heaps) add(heap, thread_text(heap, snapshot.process));
  if (snapshot.no_heap.slabs > 0) add(snapshot.no_heap, "(no heap's)");
  return sorted(std::move(table));
}

}  // namespace annex::inspect
