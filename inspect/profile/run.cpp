// Runs a program under the launcher and waits for it: see run.h.
#include "profile/run.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>

#include "message.h"
#include "profile/text.h"

namespace annex::inspect {
namespace {

// The launcher lies beside this program.
std::string launcher() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) throw Failure(kFailed, "can't tell where annex itself is: /proc is not mounted");
  std::string file(path, static_cast<size_t>(length));
  file.replace(file.rfind('/') + 1, std::string::npos, "annex");
  if (access(file.c_str(), X_OK) != 0) throw Failure(kFailed, file + ": " + strerror(errno));
  return file;
}

// Of what comes while the program runs. Blocked, and taken one after the other.
sigset_t awaited_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&signals, signal);
  return signals;
}

[[noreturn]] void start(const RunOptions& options, const std::string& annex, const sigset_t& signals) {
  std::vector<std::string> words = {annex, "run"};
  if (!options.mode.empty()) words.insert(words.end(), {"--mode", options.mode});
  words.emplace_back("--");
  words.insert(words.end(), options.program.begin(), options.program.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  setenv("ANNEX_PROFILE", options.pattern.c_str(), 1);
  if (!options.rate.empty()) setenv("ANNEX_PROFILE_RATE", options.rate.c_str(), 1);
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  execv(annex.c_str(), arguments.data());
  say("{}: {}", annex, strerror(errno));
  _exit(kFailed);
}

// One line on a terminal, written over and over.
class Progress {
 public:
  explicit Progress(pid_t process) : process_(process), shown_(isatty(STDERR_FILENO) != 0) {}
  ~Progress() {
    if (shown_) fmt::print(stderr, "\r\033[K");
  }

  void show() const {
    if (!shown_) return;
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
    uint64_t pages = 0, resident = 0;
    std::ifstream(fmt::format("/proc/{}/statm", process_)) >> pages >> resident;
    fmt::print(stderr, "\r\033[Kannex: profiling process {}: {:.0f} s, {} resident", process_, elapsed.count(),
               bytes_text(static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE))));
    fflush(stderr);
  }

 private:
  pid_t process_;
  bool shown_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

bool has_ended(pid_t process) {
  siginfo_t info{};
  return waitid(P_PID, process, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == process;
}

void wait_for(pid_t process, const sigset_t& signals) {
  const Progress progress(process);
  while (!has_ended(process)) {
    constexpr timespec kSecond = {1, 0};
    siginfo_t info{};
    const int signal = sigtimedwait(&signals, &info, &kSecond);
    if (signal < 0) {
      progress.show();
    } else if (signal != SIGCHLD && info.si_code != SI_KERNEL) {
      kill(process, signal);  // the terminal's signals reach the program without us
    }
  }
}

}  // namespace

Ended run_program(const RunOptions& options) {
  const std::string annex = launcher();
  const sigset_t signals = awaited_signals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &signals, &before);
  fflush(nullptr);
  const pid_t process = fork();
  if (process < 0) throw Failure(kFailed, std::string("can't start a process: ") + strerror(errno));
  if (process == 0) start(options, annex, before);
  wait_for(process, signals);

  // A process that has ended still has the name of what it last ran.
  std::string name;
  std::getline(std::ifstream(fmt::format("/proc/{}/comm", process)), name);
  int status = 0;
  waitpid(process, &status, 0);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  const int as_in_shell = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return {process, as_in_shell, name != "annex"};
}

}  // namespace annex::inspect
