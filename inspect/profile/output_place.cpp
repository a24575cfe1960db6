// Where a recording's files go: see output_place.h.
#include "profile/output_place.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "message.h"

namespace annex::inspect {
namespace {

constexpr std::string_view kRaw = ".raw";

[[noreturn]] void fail(const std::string& path) { throw Failure(kFailed, path + ": " + strerror(errno)); }

// Whether it is there, and a directory.
bool is_directory(const std::string& path) {
  struct stat what {};
  return stat(path.c_str(), &what) == 0 && S_ISDIR(what.st_mode);
}

int64_t written_at(const std::filesystem::path& path) {
  struct stat what {};
  if (stat(path.c_str(), &what) != 0) return 0;
  return what.st_mtim.tv_sec * int64_t{1'000'000'000} + what.st_mtim.tv_nsec;
}

}  // namespace

OutputPlace::OutputPlace(const std::string& option) {
  if (option.find('%') != std::string::npos) throw Failure(kUsage, "-o: '%' can't be in the path: " + option);
  if (option.ends_with('/') && !is_directory(option) && mkdir(option.c_str(), 0777) != 0) fail(option);
  if (option.empty() || is_directory(option)) {
    directory_ = option.empty() ? "." : option;
    prefix_ = "annex";
  } else {
    const size_t slash = option.rfind('/');
    directory_ = slash == std::string::npos ? "." : option.substr(0, slash + 1);
    prefix_ = option.substr(slash + 1);
  }
  while (directory_.size() > 1 && directory_.ends_with('/')) directory_.pop_back();
  if (!is_directory(directory_)) {
    errno = access(directory_.c_str(), F_OK) == 0 ? ENOTDIR : errno;
    fail(directory_);
  }
  if (access(directory_.c_str(), W_OK | X_OK) != 0) fail(directory_);
  before_ = raw_files();
}

std::string OutputPlace::pattern() const {
  char absolute[PATH_MAX];
  if (realpath(directory_.c_str(), absolute) == nullptr) fail(directory_);
  if (strchr(absolute, '%') != nullptr)
    throw Failure(kUsage, fmt::format("-o: '%' can't be in the path: {}", absolute));
  return fmt::format("{}/{}.%p{}", absolute, prefix_, kRaw);
}

std::string OutputPlace::path(pid_t process, const std::string& suffix) const {
  const std::string folder = directory_ == "." ? "" : directory_ == "/" ? "/" : directory_ + "/";
  return fmt::format("{}{}.{}{}", folder, prefix_, process, suffix);
}

std::map<pid_t, int64_t> OutputPlace::raw_files() const {
  std::map<pid_t, int64_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, error)) {
    const std::string name = entry.path().filename();
    const std::string start = prefix_ + ".";
    if (!name.starts_with(start) || !name.ends_with(kRaw) || name.size() <= start.size() + kRaw.size()) continue;
    const char* const end = name.data() + name.size() - kRaw.size();
    pid_t process = 0;
    if (std::from_chars(name.data() + start.size(), end, process).ptr == end) found[process] = written_at(entry.path());
  }
  return found;
}

std::vector<OutputPlace::RawFile> OutputPlace::written() const {
  std::vector<RawFile> files;
  for (const auto& [process, when] : raw_files()) {
    const auto old = before_.find(process);
    if (old == before_.end() || old->second != when) files.push_back({process, path(process, std::string(kRaw))});
  }
  return files;
}

}  // namespace annex::inspect
