// Statistics: gathered on demand, so that the fast paths count nothing.
#pragma once

#include <cstddef>

#include "annex/annex.h"
#include "os/message.h"

namespace annex::observe {

annex_stats_t gather();

void as_json(const annex_stats_t& stats, os::Text& text);
void as_text(const annex_stats_t& stats, os::Text& text);

// Writes the statistics as ANNEX_STATS (not off) and ANNEX_STATS_FILE say.
void report_at_exit();

}  // namespace annex::observe
