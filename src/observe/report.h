// Statistics: gathered on demand, so that the fast paths count nothing.
#pragma once

#include <cstddef>

#include "annex/annex.h"
#include "os/message.h"

namespace annex::observe {

// annex_stats_t, and what mallinfo needs besides.
struct Statistics : annex_stats_t {
  uint64_t spans;
  uint64_t free_pieces;  // how many free blocks of slabs and dirty runs there are
};
Statistics gather();

// Calls visit for each field of annex_stats_t.
void for_each_field(const annex_stats_t& stats, void* context,
                    void (*visit)(const char* name, uint64_t value, void* context));

void as_json(const annex_stats_t& stats, os::Text& text);
void as_text(const annex_stats_t& stats, os::Text& text);

// Writes the statistics in the format of ANNEX_STATS, which is not off, to ANNEX_STATS_FILE.
void report_at_exit();

}  // namespace annex::observe
