// The terminal: see terminal.h.
#include "process/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string_view>

#include "process/output.h"

namespace annex::inspect {

namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};

sigset_t all_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kSignals) sigaddset(&set, signal);
  return set;
}

// As much of a line as fits. (All are plain ASCII but for names, of which a part is cut off too early.)
std::string_view fitting(std::string_view line, size_t columns) { return line.substr(0, columns); }

}  // namespace

bool Terminal::is_there() { return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1; }

Terminal::Terminal() {
  const sigset_t set = all_signals();
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_ = signalfd(-1, &set, SFD_CLOEXEC);
  tcgetattr(STDIN_FILENO, &before_);
  enter();
}

Terminal::~Terminal() {
  leave();
  close(signals_);
}

void Terminal::enter() {
  termios keys = before_;
  keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  keys.c_cc[VMIN] = 1;
  keys.c_cc[VTIME] = 0;
  tcsetattr(STDIN_FILENO, TCSANOW, &keys);
  write_out("\033[?1049h\033[?25l");  // the other screen; no cursor
}

void Terminal::leave() {
  constexpr std::string_view kBack = "\033[?25h\033[?1049l";
  // Not write_out: the terminal may have gone, and this is a destructor's.
  if (write(STDOUT_FILENO, kBack.data(), kBack.size()) < 0) return;
  tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

Terminal::Size Terminal::size() {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return {24, 80};
  return {size.ws_row, size.ws_col};
}

void Terminal::show(const std::string& text) {
  const auto [rows, columns] = size();
  std::string screen = "\033[H";
  std::string_view rest = text;
  for (size_t row = 0; row < rows && !rest.empty(); ++row) {
    const size_t end = rest.find('\n');
    if (row > 0) screen += "\r\n";
    screen += fitting(rest.substr(0, end), columns);
    screen += "\033[K";  // nothing of what stood there before, to the line's end
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  write_out(screen + "\033[J");
}

Terminal::Event Terminal::take_signal() {
  signalfd_siginfo signal;
  if (read(signals_, &signal, sizeof signal) != sizeof signal) return Event::kEnd;
  if (signal.ssi_signo == SIGWINCH) return Event::kResized;
  if (signal.ssi_signo != SIGTSTP) return Event::kEnd;
  leave();
  raise(SIGSTOP);
  enter();
  return Event::kResized;
}

Terminal::Event Terminal::wait(std::chrono::milliseconds time, char* key) {
  pollfd both[] = {{STDIN_FILENO, POLLIN, 0}, {signals_, POLLIN, 0}};
  if (poll(both, 2, static_cast<int>(std::max<long>(time.count(), 0))) <= 0) return Event::kTime;
  if (both[1].revents != 0) return take_signal();
  return read(STDIN_FILENO, key, 1) == 1 ? Event::kKey : Event::kEnd;
}

}  // namespace annex::inspect
