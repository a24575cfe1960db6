// annex top: a live view of a process's heap.
#include <CLI/CLI.hpp>
#include <chrono>
#include <thread>

#include "commands.h"
#include "message.h"
#include "process/output.h"
#include "process/terminal.h"
#include "process/view.h"

namespace annex::inspect {

namespace {

using Milliseconds = std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

struct Options {
  pid_t process = 0;
  double interval = 1;
  bool once = false;
  bool json = false;
  By by = By::kClass;

  Milliseconds between() const { return Milliseconds(static_cast<long>(interval * 1000)); }
};

// True where the key means something. *by: what is shown.
bool is_choice(char key, By* by) {
  switch (key) {
    case 'c':
      *by = By::kClass;
      return true;
    case 't':
      *by = By::kThread;
      return true;
    case 's':
      *by = By::kSite;
      return true;
    default:
      return false;
  }
}

void show_live(View& view, const Options& options) {
  Terminal terminal;
  By by = options.by;
  for (bool look = true;;) {
    const auto next = Clock::now() + options.between();
    if (look) view.look(by);
    terminal.show(view.as_text_with_keys(by));
    for (look = false; !look;) {
      const auto left = std::chrono::duration_cast<Milliseconds>(next - Clock::now());
      char key = 0;
      switch (terminal.wait(left, &key)) {
        case Terminal::Event::kEnd:
          return;
        case Terminal::Event::kTime:
          look = true;
          break;
        case Terminal::Event::kResized:
          terminal.show(view.as_text_with_keys(by));
          break;
        case Terminal::Event::kKey:
          if (key == 'q' || key == 'Q') return;
          look = is_choice(key, &by);
          break;
      }
    }
  }
}

void print(const View& view, const Options& options) {
  write_out(options.json ? view.as_json(options.by).dump() + "\n" : view.as_text(options.by));
}

void top(const Options& options) {
  if (!options.once && !options.json && !Terminal::is_there()) {
    throw Failure(kUsage, "top needs a terminal, or --once or --json");
  }
  View view(options.process);
  if (!options.once && !options.json) return show_live(view, options);
  for (;;) {
    view.look(options.by);
    print(view, options);
    if (options.once) return;
    std::this_thread::sleep_for(options.between());
  }
}

}  // namespace

void add_top(CLI::App& app, int* status) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("top", "A live view of the heap of a running process");
  command->add_option("PID", options->process, "the process")->required()->check(CLI::PositiveNumber);
  command->add_option("--interval", options->interval, "seconds between two looks")->check(CLI::Range(0.05, 86400.0));
  command->add_flag("--once", options->once, "print it once");
  command->add_flag("--json", options->json, "JSON objects, one a line (docs/live-view.md)");
  const std::map<std::string, By> names = {{"class", By::kClass}, {"thread", By::kThread}, {"site", By::kSite}};
  command->add_option("--by", options->by, "what has a row each: size classes, threads or call sites")
      ->transform(CLI::CheckedTransformer(names))
      ->option_text("class|thread|site");
  command->callback([=] {
    top(*options);
    *status = kDone;
  });
}

}  // namespace annex::inspect
