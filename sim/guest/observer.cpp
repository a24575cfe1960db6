// The observer: see observer.h.
#include "guest/observer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

namespace annex::sim {

namespace {

using namespace std::chrono_literals;

constexpr int kHungStatus = 124;
constexpr int kStoppedStatus = 130;

}  // namespace

Observer::Observer(ObserverOptions options, Simulation& simulation,
                   std::function<std::string(const std::string&)> describe)
    : options_(std::move(options)), simulation_(simulation), describe_(std::move(describe)) {
  simulation_.on_attention([this] { write(how_); });
}

void Observer::start() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the program's signals are its threads'
  std::thread([this] { run(); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Observer::run() {
  uint64_t seen = 0;
  auto moved = std::chrono::steady_clock::now();
  for (unsigned tick = 1;; ++tick) {
    struct pollfd control = {options_.control, POLLIN, 0};
    if (poll(&control, 1, 200) > 0 && (control.revents & POLLHUP) != 0) {
      write_soon("stopped");
      _exit(kStoppedStatus);
    }
    if (finished()) return;
    show_progress();
    if (tick % 5 == 0) write_soon("");
    const auto now = std::chrono::steady_clock::now();
    const uint64_t instructions = simulation_.instructions();
    if (instructions != seen) {
      seen = instructions;
      moved = now;
    } else if (options_.watchdog_s > 0 && now - moved > std::chrono::seconds(options_.watchdog_s)) {
      write_soon("hang");
      fmt::print(stderr,
                 "annex-sim: no instruction for {} s: the program hangs, or waits for something outside of it\n",
                 options_.watchdog_s);
      _exit(kHungStatus);
    }
  }
}

void Observer::show_progress() const {
  if (options_.progress < 0) return;
  const std::string line = fmt::format("{} {}\n", simulation_.instructions(), simulation_.cycles());
  [[maybe_unused]] const ssize_t written = ::write(options_.progress, line.data(), line.size());
}

void Observer::write_soon(const std::string& how) {
  how_ = how;
  simulation_.ask_for_attention();
  const auto until = std::chrono::steady_clock::now() + 1s;
  while (simulation_.attention_asked() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(1ms);
  if (simulation_.attention_asked() && !how.empty()) write(how);
}

void Observer::write(const std::string& how) {
  // Whoever holds it may never go on, and then this thread must.
  std::unique_lock guard(mutex_, 10s);
  if (!guard.owns_lock()) return;
  if (options_.out.empty() || finished()) return;
  const std::string text = describe_(how);
  const std::string beside = options_.out + ".new";
  std::FILE* file = std::fopen(beside.c_str(), "we");
  if (file == nullptr) return;
  const bool whole = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !whole) return;
  std::error_code error;
  std::filesystem::rename(beside, options_.out, error);
}

void Observer::finish(const std::string& how) {
  if (finished()) return;
  show_progress();
  write(how);
  finished_.store(true);
}

}  // namespace annex::sim
