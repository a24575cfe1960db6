// The process's own cgroup (version 2).
#pragma once

#include <cstddef>

namespace annex::os {

inline constexpr size_t kLongestCgroupPath = 512;

// The path of a file of the process's own cgroup; an empty one where it has none. Where the two files below are
// elsewhere: for tests.
const char* path_in_own_cgroup(const char* file, char (&path)[kLongestCgroupPath],
                               const char* cgroups = "/proc/self/cgroup", const char* root = "/sys/fs/cgroup");

}  // namespace annex::os
