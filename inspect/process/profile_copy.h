// A process's profile (src/profile/tables.h), copied while the process writes to it.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "process/target.h"

namespace annex::inspect {

struct ModuleCopy {
  uint32_t number;
  uint64_t start, end, offset;
  std::string build_id;  // hexadecimal; empty where it has none
  std::string path;
};

struct LabelCopy {
  uint32_t set;
  std::string key, value;
};

struct FrameCopy {
  uint16_t module;  // 0: none known
  uint64_t return_address;
};

struct SiteCopy {
  uint32_t number, labels;
  uint64_t samples;
  double objects, bytes, freed;
  double lifetimes[profile::kLifetimes];
  std::vector<FrameCopy> frames;  // the innermost first
};

// A sample that is in use.
struct LiveCopy {
  uint32_t site;  // its number
  uint64_t block, asked, size, age_ms;
  double weight;
  uint32_t thread;
  bool is_span;
  std::vector<uint32_t> shares;  // of a slab's block: for each page on which it lies, how many blocks in use do
};

struct ProfileCopy {
  uint64_t rate = 0;     // of the last one that was on; 0: there never was one
  uint64_t dropped = 0;  // samples
  uint64_t began_unix_ms = 0;
  std::vector<ModuleCopy> modules;  // the oldest first, and so are the next two
  std::vector<LabelCopy> labels;
  std::vector<SiteCopy> sites;
  std::vector<LiveCopy> live;
};

// Whether a profile is on; its rate.
uint64_t profile_rate(const Target& target);

ProfileCopy copy_profile(const Target& target);

}  // namespace annex::inspect
