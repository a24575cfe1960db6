// A raw profile (src/observe/profile_file.h) as a test reads it: by label, as each test gives its sites one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace annex_test {

struct ProfiledSite {
  std::uint64_t samples = 0;
  double objects = 0;  // that were allocated
  double bytes = 0;
  double freed = 0;  // of objects
  double live_objects = 0;
  double live_bytes = 0;  // as asked for
  std::uint64_t live_samples = 0;
  std::vector<std::string> frames;  // of one of its stacks
};

struct RawProfile {
  std::map<std::string, ProfiledSite> sites;  // by value of the label "site"; "": without labels
  std::map<std::string, std::uint64_t> stats;
  std::vector<std::string> modules;  // paths
  std::vector<std::string> shares;   // of live blocks of slabs
  bool complete = false;
};

// The process's profile, as it is now.
RawProfile profile_now();
RawProfile read_profile(const std::string& path);

// What is allocated until the end of the scope bears that label.
class SiteLabel {
 public:
  explicit SiteLabel(const char* value);
  ~SiteLabel();
};

}  // namespace annex_test
