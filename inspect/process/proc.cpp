// /proc: see proc.h.
#include "process/proc.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "message.h"
#include "process/refusal.h"

namespace annex::inspect {

namespace {

// The whole file, or the error (errno).
struct FileText {
  std::string text;
  int error = 0;
};

FileText read_file(const std::string& path) {
  FileText file;
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return {.text = {}, .error = errno};
  char piece[16384];
  for (;;) {
    const ssize_t bytes = read(descriptor, piece, sizeof piece);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) file.error = errno;
    if (bytes <= 0) break;
    file.text.append(piece, static_cast<size_t>(bytes));
  }
  close(descriptor);
  return file;
}

uint64_t kib(std::istringstream& words) {
  uint64_t number = 0;
  words >> number;
  return number << 10;
}

// "7f00-7f10 r-xp 00000000 08:01 1234    /path"
std::optional<Mapping> parse_mapping(const std::string& line) {
  Mapping mapping = {};
  char rights[5] = {};
  int path = 0;
  if (sscanf(line.c_str(), "%lx-%lx %4s %lx %*s %lu %n", &mapping.start, &mapping.end, rights, &mapping.offset,
             &mapping.inode, &path) < 5) {
    return std::nullopt;
  }
  mapping.readable = rights[0] == 'r';
  mapping.writable = rights[1] == 'w';
  mapping.executable = rights[2] == 'x';
  mapping.path = line.substr(static_cast<size_t>(path));
  return mapping;
}

}  // namespace

ProcStatus read_status(pid_t process) {
  const FileText file = read_file(fmt::format("/proc/{}/status", process));
  if (file.text.empty()) throw Failure(kNoProcess, fmt::format("there is no process {}", process));
  ProcStatus status;
  std::istringstream lines(file.text);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, colon);
    std::istringstream words(line.substr(colon + 1));
    words >> std::ws;
    if (key == "Name") std::getline(words, status.name);
    if (key == "Tgid") words >> status.process;
    if (key == "State") words >> status.state;
    if (key == "Uid") words >> status.user >> status.user;
    if (key == "VmSize") status.has_memory = true;
    if (key == "VmHWM") status.peak_resident = kib(words);
    if (key == "VmRSS") status.resident = kib(words);
  }
  return status;
}

std::vector<Mapping> read_mappings(pid_t process) {
  const FileText file = read_file(fmt::format("/proc/{}/maps", process));
  if (file.error == EACCES || file.error == EPERM) refuse(process);
  if (file.error != 0 && file.error != ESRCH && file.error != ENOENT) {
    throw Failure(kFailed, fmt::format("/proc/{}/maps: {}", process, strerror(file.error)));
  }
  std::vector<Mapping> mappings;
  std::istringstream lines(file.text);
  for (std::string line; std::getline(lines, line);) {
    if (auto mapping = parse_mapping(line)) mappings.push_back(std::move(*mapping));
  }
  return mappings;
}

std::optional<uint64_t> exact_resident(pid_t process) {
  std::istringstream lines(read_file(fmt::format("/proc/{}/smaps_rollup", process)).text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("Rss:")) continue;
    std::istringstream words(line.substr(strlen("Rss:")));
    return kib(words);
  }
  return std::nullopt;
}

std::string program_path(pid_t process) {
  std::error_code error;
  return std::filesystem::read_symlink(fmt::format("/proc/{}/exe", process), error);
}

std::string thread_name(pid_t process, long thread) {
  std::string name = read_file(fmt::format("/proc/{}/task/{}/comm", process, thread)).text;
  if (name.ends_with('\n')) name.pop_back();
  return name;
}

uint64_t cpu_us_of_threads(pid_t process, const std::string& name) {
  uint64_t total_ns = 0;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process), error)) {
    if (read_file(task.path() / "comm").text != name + "\n") continue;
    // Its first number: nanoseconds on a CPU.
    const std::string text = read_file(task.path() / "schedstat").text;
    uint64_t ns = 0;
    std::from_chars(text.data(), text.data() + text.size(), ns);
    total_ns += ns;
  }
  return total_ns / 1000;
}

}  // namespace annex::inspect
