// Statistics: gathered on demand, so that the fast paths count nothing.
#pragma once

#include <cstddef>

#include "annex/annex.h"
#include "os/message.h"

namespace annex::observe {

// With what the C library's calls tell beside it.
struct Statistics : annex_stats_t {
  uint64_t spans;
  uint64_t free_pieces;  // of slabs + dirty - (used - used_spans): blocks of slabs, and dirty runs
};
Statistics gather();

void as_json(const annex_stats_t& stats, os::Text& text);
void as_text(const annex_stats_t& stats, os::Text& text);

// Writes the statistics as ANNEX_STATS (not off) and ANNEX_STATS_FILE say.
void report_at_exit();

}  // namespace annex::observe
