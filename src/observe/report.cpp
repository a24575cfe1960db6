// Statistics: see report.h. What each line means is in docs/statistics.md.
#include "observe/report.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "front/front.h"
#include "observe/walk.h"
#include "os/options.h"
#include "os/standard_error.h"
#include "os/system_call.h"
#include "pages/arena.h"
#include "pages/page_heap.h"

namespace annex::observe {

namespace {

struct Field {
  const char* name;
  uint64_t annex_stats_t::*value;
  bool bytes;
};

constexpr Field kFields[] = {
    {"reserved", &annex_stats_t::reserved, true},
    {"committed", &annex_stats_t::committed, true},
    {"metadata", &annex_stats_t::metadata, true},
    {"slabs", &annex_stats_t::slabs, true},
    {"used", &annex_stats_t::used, true},
    {"used_spans", &annex_stats_t::used_spans, true},
    {"dirty", &annex_stats_t::dirty, true},
    {"peak_in_use", &annex_stats_t::peak_in_use, true},
    {"purged_total", &annex_stats_t::purged_total, true},
    {"huge_page_bytes", &annex_stats_t::huge_page_bytes, true},
    {"heaps", &annex_stats_t::heaps, false},
    {"arenas", &annex_stats_t::arenas, false},
    {"slab_refills", &annex_stats_t::slab_refills, false},
    {"remote_batches", &annex_stats_t::remote_batches, false},
    {"support_cpu_us", &annex_stats_t::support_cpu_us, false},
};

int add_region(const annex_region* region, void* context) {
  Statistics* stats = static_cast<Statistics*>(context);
  if (region->kind == ANNEX_REGION_SLAB) {
    stats->slabs += region->bytes;
    stats->free_pieces += region->blocks - region->used;
  }
  if (region->kind == ANNEX_REGION_SPAN) {
    stats->used_spans += region->block_size;
    ++stats->spans;
  }
  stats->used += region->used * region->block_size;
  return 0;
}

// ANNEX_STATS_FILE with %p replaced by the process id.
int open_destination() {
  const char* pattern = os::options.stats_file;
  if (*pattern == '\0') return os::standard_error();
  char path[4096];
  os::Text text(path, sizeof path - 1);
  os::add_path(text, pattern);
  path[text.stored()] = '\0';
  // Not by libc's open and close, where a thread that ends the process may be cancelled.
  const long file = os::system_call(SYS_openat, AT_FDCWD, reinterpret_cast<long>(path),
                                    O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) os::warn("can't write statistics to ", path);
  return static_cast<int>(file);
}

}  // namespace

Statistics gather() {
  Statistics stats = {};
  const front::HeapCounts counts = Front::count_heaps();
  stats.heaps = counts.heaps;
  stats.slab_refills = counts.refills;
  stats.remote_batches = counts.remote_batches;
  stats.support_cpu_us = counts.support_cpu_us;
  // All under one hold of the lock: what is freed between two would be counted as in use and as free.
  const Locked lock;
  walk(lock, add_region, &stats);
  stats.free_pieces += page_heap.count_dirty_runs(lock);
  const size_t beside = page_heap.books.beside.load(std::memory_order_relaxed);
  stats.reserved = stats.committed = page_heap.books.committed + beside;
  stats.metadata = page_heap.books.metadata + beside;
  stats.dirty = page_heap.books.dirty;
  stats.peak_in_use = page_heap.books.peak;
  stats.purged_total = page_heap.books.purged_total;
  stats.huge_page_bytes = page_heap.books.huge;
  stats.arenas = arena_count;
  return stats;
}

void for_each_field(const annex_stats_t& stats, void* context,
                    void (*visit)(const char* name, uint64_t value, void* context)) {
  for (const Field& field : kFields) visit(field.name, stats.*field.value, context);
}

void as_json(const annex_stats_t& stats, os::Text& text) {
  text << "{\"version\":\"" << annex_version() << "\",\"pid\":" << static_cast<uint64_t>(getpid());
  for (const Field& field : kFields) text << ",\"" << field.name << "\":" << stats.*field.value;
  text << "}";
}

void as_text(const annex_stats_t& stats, os::Text& text) {
  text << "annex " << annex_version() << ", process " << static_cast<uint64_t>(getpid()) << "\n";
  for (const Field& field : kFields) {
    text << "  " << field.name;
    for (size_t i = strlen(field.name); i < 18; ++i) text << " ";
    const uint64_t value = stats.*field.value;
    if (field.bytes) {
      text << value / 1024 << " KiB\n";
    } else {
      text << value << "\n";
    }
  }
}

void report_at_exit() {
  char buffer[4096];
  os::Text text(buffer, sizeof buffer);
  const annex_stats_t stats = gather();
  if (os::options.stats == os::StatsFormat::kJson) {
    as_json(stats, text);
    text << "\n";
  } else {
    as_text(stats, text);
  }
  const int file = open_destination();
  if (file < 0) return;
  os::write_all(file, text.data(), text.stored());
  if (*os::options.stats_file != '\0') os::system_call(SYS_close, file);
}

}  // namespace annex::observe
