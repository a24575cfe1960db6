// The raw file of a heap profile, read: src/observe/profile_file.h says what its lines are.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace annex::inspect {

struct SizeClass {
  uint64_t size, slabs, bytes, made, used;
};

struct Module {
  uint64_t start, end, offset;
  std::string build_id;  // hexadecimal; "" where it has none
  std::string path;
};

struct Frame {
  size_t module;  // place in RawProfile::modules, or kNoModule
  uint64_t return_address;
};
inline constexpr size_t kNoModule = SIZE_MAX;

using Labels = std::vector<std::pair<std::string, std::string>>;

inline constexpr size_t kLifetimes = 8;

struct RawSite {
  Labels labels;
  uint64_t samples;
  double objects, bytes, freed;
  std::array<double, kLifetimes> lifetimes;
  std::vector<Frame> frames;  // the innermost first
};

struct LiveBlock {
  size_t site;  // place in RawProfile::sites
  uint64_t address, asked, size;
  double weight;
  uint64_t age_ms, thread, resident;
  std::vector<uint64_t> shares;  // blocks in use on each of its pages; none for a span
};

struct RawProfile {
  uint64_t pid = 0;
  std::string program;  // the path of its file
  std::string version;
  uint64_t began_ms = 0, written_ms = 0, rate = 0, page = 0;
  std::map<std::string, uint64_t> stats;
  std::vector<SizeClass> classes;
  std::vector<Module> modules;
  std::vector<RawSite> sites;
  std::vector<LiveBlock> live;

  uint64_t stat(const std::string& name) const;
};

// `name` is how messages call the file. Both throw Failure.
RawProfile parse_raw(std::string_view text, const std::string& name);
RawProfile read_raw(const std::string& path);

}  // namespace annex::inspect
