// Snapshots as JSON: see as_json.h.
#include "process/as_json.h"

#include <cmath>

#include "process/proc.h"

namespace annex::inspect {

namespace {

using nlohmann::ordered_json;

ordered_json classes_of(const Snapshot& snapshot) {
  ordered_json classes = ordered_json::array();
  for (annex::SizeClass c = 0; c < kClasses; ++c) {
    const ClassCounts& counts = snapshot.classes[c];
    if (counts.slabs == 0) continue;
    const uint64_t size = block_size(c);
    classes.push_back({{"block_bytes", size},
                       {"slabs", counts.slabs},
                       {"slab_bytes", counts.bytes},
                       {"blocks", counts.blocks},
                       {"made_blocks", counts.made},
                       {"hole_blocks", counts.in_holes},
                       {"used_blocks", counts.used},
                       {"used_bytes", counts.used * size},
                       {"free_touched_bytes", (counts.made - counts.in_holes - counts.used) * size}});
  }
  return classes;
}

ordered_json heap_as_json(const HeapCounts& heap, pid_t process) {
  ordered_json json = {{"holder", holder_name(heap.holder)}, {"thread", nullptr}, {"thread_name", nullptr}};
  if (heap.thread != 0) {
    json["thread"] = heap.thread;
    json["thread_name"] = thread_name(process, heap.thread);
  }
  json["slabs"] = heap.slabs;
  json["slab_bytes"] = heap.bytes;
  json["used_bytes"] = heap.used;
  json["slab_refills"] = heap.refills;
  json["remote_batches"] = heap.batches;
  return json;
}

}  // namespace

const char* holder_name(HeapCounts::Holder holder) {
  switch (holder) {
    case HeapCounts::Holder::kThread:
      return "thread";
    case HeapCounts::Holder::kEnded:
      return "ended";
    default:
      return "unknown";
  }
}

ordered_json as_json(const Snapshot& snapshot) {
  ordered_json json = {{"schema", "annex-stats/1"},
                       {"pid", snapshot.process},
                       {"program", snapshot.program},
                       {"version", snapshot.version},
                       {"time_unix_ms", snapshot.unix_ms},
                       {"resident", snapshot.resident},
                       {"peak_resident", snapshot.peak_resident},
                       {"reserved", snapshot.committed},
                       {"committed", snapshot.committed},
                       {"metadata", snapshot.metadata},
                       {"slabs", snapshot.slabs},
                       {"used", snapshot.used},
                       {"used_spans", snapshot.used_spans},
                       {"spans", snapshot.span_count},
                       {"dirty", snapshot.dirty},
                       {"free_in_slabs", snapshot.free_in_slabs()},
                       {"free_touched", snapshot.free_touched()},
                       {"fragmentation", std::round(snapshot.fragmentation() * 10000) / 10000},
                       {"peak_in_use", snapshot.peak_in_use},
                       {"purged_total", snapshot.purged_total},
                       {"huge_page_bytes", snapshot.huge_page_bytes},
                       {"heaps", snapshot.heap_count},
                       {"arenas", snapshot.arenas},
                       {"slab_refills", snapshot.slab_refills},
                       {"remote_batches", snapshot.remote_batches},
                       {"support_cpu_us", snapshot.support_cpu_us},
                       {"unclear_granules", snapshot.unclear_granules}};
  json["classes"] = classes_of(snapshot);
  json["thread_heaps"] = ordered_json::array();
  for (const HeapCounts& heap : snapshot.heaps) json["thread_heaps"].push_back(heap_as_json(heap, snapshot.process));
  json["slabs_of_no_heap"] = {
      {"slabs", snapshot.no_heap.slabs}, {"slab_bytes", snapshot.no_heap.bytes}, {"used_bytes", snapshot.no_heap.used}};
  return json;
}

}  // namespace annex::inspect
