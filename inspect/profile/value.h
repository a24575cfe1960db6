// What can be asked of a call site, and of a whole heap: one number of each kind.
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace annex::inspect {

enum Value : size_t { kLiveBytes, kLiveBlocks, kTotalBytes, kTotalBlocks, kPinnedBytes, kValueCount };

struct ValueKind {
  const char* name;   // on the command line
  const char* title;  // for people
  const char* unit;   // bytes or blocks
};

inline constexpr ValueKind kValues[kValueCount] = {
    {"live", "live bytes", "bytes"},     {"blocks", "live blocks", "blocks"},
    {"total", "total bytes", "bytes"},   {"total-blocks", "total blocks", "blocks"},
    {"pinned", "pinned bytes", "bytes"},
};

using Values = std::array<double, kValueCount>;

inline bool in_bytes(Value value) { return value != kLiveBlocks && value != kTotalBlocks; }

// By its name on the command line. Throws Failure where there is none of that name.
Value value_of(const std::string& name);

}  // namespace annex::inspect
