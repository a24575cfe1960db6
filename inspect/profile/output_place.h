// Where a recording's files go: -o names a directory, or the beginning of their names.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace annex::inspect {

class OutputPlace {
 public:
  // Of what -o was given. Throws Failure where nothing can be written there.
  explicit OutputPlace(const std::string& option);

  // For ANNEX_PROFILE: an absolute path, as programs change their directory, with %p for the process.
  std::string pattern() const;
  std::string path(pid_t process, const std::string& suffix) const;

  struct RawFile {
    pid_t process;
    std::string path;
  };
  // Those that are new here, or were written anew, since this was made.
  std::vector<RawFile> written() const;

 private:
  // The raw files here by process: when each was written, in nanoseconds.
  std::map<pid_t, int64_t> raw_files() const;

  std::string directory_, prefix_;
  std::map<pid_t, int64_t> before_;
};

}  // namespace annex::inspect
