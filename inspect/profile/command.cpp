// annex profile: its command line.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iterator>
#include <memory>

#include "commands.h"
#include "message.h"
#include "profile/diff.h"
#include "profile/files.h"
#include "profile/formats.h"
#include "profile/record.h"
#include "profile/report.h"
#include "profile/words.h"

namespace annex::inspect {
namespace {

constexpr char kRawHelp[] = "a .raw file that annex profile wrote";

// "512K": bytes. Throws Failure.
uint64_t bytes_of(const std::string& option, const std::string& text) {
  constexpr std::string_view kUnits = "KMG";
  const size_t unit = text.empty() ? std::string::npos : kUnits.find(text.back());
  const std::string_view digits = std::string_view(text).substr(0, text.size() - (unit == std::string::npos ? 0 : 1));
  const int shift = unit == std::string::npos ? 0 : 10 * (static_cast<int>(unit) + 1);
  try {
    const auto number = Words::parse(digits);
    if (number > 0 && number <= UINT64_MAX >> 24 >> shift) return number << shift;
  } catch (const BadLine&) {
  }
  throw Failure(kUsage, fmt::format("{}: '{}' is no number of bytes; give one such as 524288 or 512K", option, text));
}

Profile profile_of(const std::string& raw_file) {
  Profile profile = make_profile(read_raw(raw_file));
  for (const std::string& problem : profile.problems) say("{}", problem);
  return profile;
}

std::string converted(const Profile& profile, const std::string& format, Value value) {
  if (format == "pprof") return pprof(profile);
  if (format == "collapsed") return collapsed(profile, value);
  if (format == "speedscope") return speedscope(profile, value);
  if (format == "html") return page(profile, value);
  return document(profile);
}

void add_show(CLI::App& profile) {
  struct Options {
    std::string raw, by = kValues[kLiveBytes].name;
    size_t top = 20;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = profile.add_subcommand("show", "Show a profile as text.");
  command->add_option("RAW", options->raw, kRawHelp)->required();
  command->add_option("--top", options->top, "how many call sites")->check(CLI::PositiveNumber);
  command->add_option("--by", options->by, "by which value: live, blocks, total, total-blocks or pinned");
  command->callback([options] {
    const Value by = value_of(options->by);
    const Profile shown = profile_of(options->raw);
    fmt::print("{}", summary(shown));
    const std::string tables[] = {top_sites(shown, by, options->top), pin_table(shown, options->top),
                                  class_table(shown)};
    for (const std::string& table : tables) {
      if (!table.empty()) fmt::print("\n{}", table);
    }
    finish_output();
  });
}

void add_convert(CLI::App& profile) {
  struct Options {
    std::string raw, format, output = "-", value = kValues[kLiveBytes].name;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = profile.add_subcommand("convert", "Write a profile in another format.");
  command->add_option("RAW", options->raw, kRawHelp)->required();
  command->add_option("--to", options->format, "pprof, collapsed, speedscope, html or json")->required();
  command->add_option("-o,--output", options->output, "the file; - is standard output");
  command->add_option("--value", options->value,
                      "of which value collapsed stacks are, and which one is shown first: live, blocks, total, "
                      "total-blocks or pinned");
  command->callback([options] {
    constexpr std::string_view kFormats[] = {"pprof", "collapsed", "speedscope", "html", "json"};
    const Value value = value_of(options->value);
    if (std::find(std::begin(kFormats), std::end(kFormats), options->format) == std::end(kFormats)) {
      throw Failure(kUsage,
                    fmt::format("unknown format '{}': pprof, collapsed, speedscope, html or json", options->format));
    }
    if (options->format == "pprof" && options->output == "-" && isatty(STDOUT_FILENO) != 0) {
      throw Failure(kUsage, "pprof's format is binary: give a file, -o FILE");
    }
    write_file(options->output, converted(profile_of(options->raw), options->format, value));
  });
}

void add_diff(CLI::App& profile) {
  struct Options {
    std::string before, after;
    size_t top = 20;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = profile.add_subcommand("diff", "Show what grew between two profiles, by call stack.");
  command->add_option("BEFORE", options->before, kRawHelp)->required();
  command->add_option("AFTER", options->after, kRawHelp)->required();
  command->add_option("--top", options->top, "how many call stacks that grew, and that shrank")
      ->check(CLI::PositiveNumber);
  command->callback([options] {
    const Profile before = profile_of(options->before);
    const Profile after = profile_of(options->after);
    fmt::print("{}", diff_text(before, after, options->top));
    finish_output();
  });
}

// The last words of the command line as they are. CLI11 takes words in brackets apart, "[a,b]".
std::vector<std::string> last_words(size_t count) {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  if (words.size() < count) throw Failure(kFailed, "/proc is not mounted");
  return {words.end() - static_cast<ptrdiff_t>(count), words.end()};
}

}  // namespace

void add_profile(CLI::App& app, int* status) {
  struct Options {
    std::string mode, output, rate;
    std::vector<std::string> program;
    pid_t attach = 0;
    double seconds = 30;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("profile", "Take a heap profile: annex profile -- PROGRAM ARGUMENTS, or --attach PID.");
  command->positionals_at_end();
  command->require_subcommand(0, 1);
  command->add_option("--mode", options->mode, "shared, solo, offload or hardened");
  command->add_option("-o,--output", options->output, "the directory of its files, or the beginning of their names");
  CLI::Option* rate =
      command->add_option("--rate", options->rate, "mean bytes of blocks between two samples, such as 512K");
  command->add_option("--attach", options->attach, "a running process, instead of a program")
      ->check(CLI::PositiveNumber);
  command->add_option("--seconds", options->seconds, "with --attach, where no profile is on: for how long one is")
      ->check(CLI::NonNegativeNumber);
  CLI::Option* program =
      command->add_option("PROGRAM", options->program, "the program and its arguments")->expected(1, -1);
  add_show(*command);
  add_convert(*command);
  add_diff(*command);
  command->callback([=] {
    if (!command->get_subcommands().empty()) return;
    const auto& order = command->parse_order();
    const auto count = static_cast<size_t>(std::count(order.begin(), order.end(), program));
    if ((count == 0) == (options->attach == 0)) {
      throw Failure(kUsage, "profile needs a program, annex profile -- PROGRAM ARGUMENTS, or --attach PID");
    }
    if (options->attach != 0) {
      record_running(options->attach, options->seconds, options->output);
      return;
    }
    RunOptions run;
    run.mode = options->mode;
    run.program = last_words(count);
    if (rate->count() > 0) run.rate = fmt::format("{}", bytes_of("--rate", options->rate));
    *status = record(std::move(run), options->output);
  });
}

}  // namespace annex::inspect
