// A snapshot as JSON, schema "annex-stats/1": docs/live-view.md says what each key is.
#pragma once

#include <nlohmann/json.hpp>

#include "process/snapshot.h"

namespace annex::inspect {

nlohmann::ordered_json as_json(const Snapshot& snapshot);

// "thread", "ended" or "unknown".
const char* holder_name(HeapCounts::Holder holder);

}  // namespace annex::inspect
