// A machine as a TOML file: read and checked, and written as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "machine/parameters.h"

namespace annex::sim {

// Reads a machine. `base = "NAME"` in the file takes everything that it does not say from NAME.toml in the same folder,
// or in `presets`. Each problem is a line that says where and what; the machine counts only where there are none.
std::vector<std::string> read_machine(const std::string& path, const std::string& presets, Machine& machine);

nlohmann::json to_json(const Machine& machine);
// Every parameter with its unit, bounds and meaning, as a Markdown table.
std::string describe_parameters();

}  // namespace annex::sim
