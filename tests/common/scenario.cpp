// Starts scenarios in fresh processes and collects their outcome; see scenario.h.
#include "common/scenario.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern char** environ;

namespace annex_test {
namespace {

struct Entry {
  const char* name;
  int (*body)();
};

// A plain array: registration happens before main and must not depend on the order of constructors.
constexpr int kMaxScenarios = 256;
Entry entries[kMaxScenarios];
int entry_count = 0;
const char* argument = "";

// Path and arguments of an emulator that programs are started in, where this one runs in it; else nullptr.
const char* emulator() { return getenv("ANNEX_TEST_EMULATOR"); }

std::vector<std::string> merged_environment(const Launch& launch) {
  std::vector<std::string> merged;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string line = *at;
    bool replaced = emulator() != nullptr && line.compare(0, 11, "LD_PRELOAD=") == 0;  // it is given its own
    for (const auto& [name, value] : launch.environment) {
      replaced = replaced || line.compare(0, name.size() + 1, name + "=") == 0;
    }
    if (!replaced) merged.push_back(line);
  }
  for (const auto& [name, value] : launch.environment) merged.push_back(name + "=" + value);
  return merged;
}

void limit(int resource, rlim_t value) {
  if (value == RLIM_INFINITY) return;
  const rlimit both{value, value};
  setrlimit(static_cast<__rlimit_resource>(resource), &both);
}

// Reads both pipes until both are closed, so that neither can fill up and block the child.
void collect(int out, int err, Outcome* outcome) {
  pollfd files[2] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
  std::string* texts[2] = {&outcome->out, &outcome->err};
  int open_files = 2;
  while (open_files > 0) {
    if (poll(files, 2, -1) < 0 && errno != EINTR) break;
    for (int i = 0; i < 2; ++i) {
      if (files[i].fd < 0 || files[i].revents == 0) continue;
      char chunk[4096];
      const ssize_t length = read(files[i].fd, chunk, sizeof chunk);
      if (length > 0) {
        texts[i]->append(chunk, static_cast<std::size_t>(length));
      } else if (length == 0 || errno != EINTR) {
        files[i].fd = -1;
        --open_files;
      }
    }
  }
}

// How this program is started again.
std::vector<std::string> this_program() {
  if (emulator() == nullptr) return {"/proc/self/exe"};
  std::vector<std::string> words;
  for (const char* at = emulator(); *at != '\0'; at += strspn(at, " ")) {
    words.emplace_back(at, strcspn(at, " "));
    at += words.back().size();
  }
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  words.emplace_back(path, length > 0 ? static_cast<std::size_t>(length) : 0);
  return words;
}

// What the emulator itself has to say of a program's end.
void remove_lines_of_the_emulator(std::string* text) {
  for (std::size_t at; (at = text->find("qemu: ")) != std::string::npos;) {
    const std::size_t end = text->find('\n', at);
    text->erase(at, end == std::string::npos ? end : end + 1 - at);
  }
}

}  // namespace

RegisterScenario::RegisterScenario(const char* name, int (*body)()) {
  if (entry_count == kMaxScenarios) abort();
  entries[entry_count++] = {name, body};
}

Outcome run_scenario(const Launch& launch) {
  const std::vector<std::string> lines = merged_environment(launch);
  std::vector<char*> environment;
  for (const std::string& line : lines) environment.push_back(const_cast<char*>(line.c_str()));
  environment.push_back(nullptr);
  std::vector<std::string> words = this_program();
  words.push_back("--scenario=" + launch.scenario);
  words.push_back(launch.argument);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  Outcome outcome;
  int out[2];
  int err[2];
  if (pipe2(out, O_CLOEXEC) != 0) return outcome;
  if (pipe2(err, O_CLOEXEC) != 0) {
    close(out[0]);
    close(out[1]);
    return outcome;
  }
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, 0);
    dup2(out[1], 1);
    dup2(err[1], 2);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_AS, launch.address_space);
    limit(RLIMIT_DATA, launch.data);
    execve(arguments[0], arguments.data(), environment.data());
    _exit(126);
  }
  close(out[1]);
  close(err[1]);
  if (child > 0) {
    collect(out[0], err[0], &outcome);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  }
  close(out[0]);
  close(err[0]);
  if (emulator() != nullptr) remove_lines_of_the_emulator(&outcome.err);
  return outcome;
}

std::string describe(const Outcome& outcome) {
  return "exit code " + std::to_string(outcome.exit_code) + ", signal " + std::to_string(outcome.signal) +
         "\nstdout: " + outcome.out + "\nstderr: " + outcome.err;
}

const char* scenario_argument() { return argument; }

int maybe_run_scenario(int argc, char** argv) {
  static constexpr char kFlag[] = "--scenario=";
  if (argc < 2 || std::strncmp(argv[1], kFlag, sizeof kFlag - 1) != 0) return -1;
  const char* wanted = argv[1] + sizeof kFlag - 1;
  argument = argc > 2 ? argv[2] : "";
  for (int i = 0; i < entry_count; ++i) {
    if (std::strcmp(entries[i].name, wanted) == 0) return entries[i].body();
  }
  fprintf(stderr, "no scenario named %s\n", wanted);
  return 125;
}

void scenario_failed(const char* file, int line, const char* condition) {
  char text[512];
  const int length = snprintf(text, sizeof text, "%s:%d: scenario check failed: %s\n", file, line, condition);
  if (length > 0 && write(2, text, static_cast<std::size_t>(length)) < 0) {
    _exit(3);
  }
  _exit(1);
}

}  // namespace annex_test
