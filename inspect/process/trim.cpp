// annex trim: a process gives back to the system what it has free.
#include <CLI/CLI.hpp>

#include "commands.h"
#include "message.h"
#include "process/ask.h"
#include "process/output.h"
#include "process/proc.h"
#include "process/units.h"

namespace annex::inspect {

namespace {

struct Options {
  pid_t process = 0;
  double timeout = 5;
};

uint64_t resident(pid_t process) { return exact_resident(process).value_or(0); }

void trim(const Options& options) {
  const Target target = open_target(options.process);
  const pid_t process = target.memory.process();
  const uint64_t before = resident(process);
  const std::chrono::milliseconds timeout(static_cast<long>(options.timeout * 1000));
  const Answer answer = ask(target, os::Control::kTrim, 0, timeout);
  if (answer.how == Answer::How::kNotTakenUp) {
    throw Failure(kFailed, fmt::format("process {} ({}): none of its threads has asked for memory within {} s, as one "
                                       "must that is to give some back",
                                       process, target.name, options.timeout));
  }
  if (answer.how == Answer::How::kNotDone) {
    throw Failure(kFailed, fmt::format("process {} ({}) has begun to give memory back, and goes on after {} s", process,
                                       target.name, options.timeout));
  }
  const uint64_t after = resident(process);
  write_out(fmt::format("{} ({}): resident memory {} -> {} ({}), given back {}\n", target.name, process,
                        in_units(before), in_units(after),
                        change_in_units(static_cast<double>(after) - static_cast<double>(before)),
                        in_units(answer.given_back)));
}

}  // namespace

void add_trim(CLI::App& app, int* status) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("trim", "Has a running process give its free memory back to the system");
  command->add_option("PID", options->process, "the process")->required()->check(CLI::PositiveNumber);
  command->add_option("--timeout", options->timeout, "for so many seconds it is waited for")
      ->check(CLI::Range(0.0, 86400.0));
  command->callback([=] {
    trim(*options);
    *status = kDone;
  });
}

}  // namespace annex::inspect
