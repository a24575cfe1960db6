// The process's own cgroup: see own_cgroup.h.
#include "os/own_cgroup.h"

#include "os/small_file.h"
#include "os/text.h"

namespace annex::os {

const char* path_in_own_cgroup(const char* file, char (&path)[kLongestCgroupPath], const char* cgroups,
                               const char* root) {
  char lines[1024];
  const char* line = find_in(read_file(cgroups, lines), "0::/");
  Text text(path, sizeof path - 1);
  if (line != nullptr) {
    const char* const name = line + 3;
    const char* const end = find_in(name, "\n");
    text << root;
    text.append(name, end != nullptr ? static_cast<size_t>(end - name) : length_of(name));
    text << "/" << file;
  }
  path[text.stored()] = '\0';
  return path;
}

}  // namespace annex::os
