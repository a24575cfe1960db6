// annex stats: what a process's heap holds now.
#include <CLI/CLI.hpp>

#include "commands.h"
#include "message.h"
#include "process/as_json.h"
#include "process/output.h"
#include "process/snapshot.h"
#include "process/tables.h"
#include "process/units.h"

namespace annex::inspect {

namespace {

void add_line(std::string* text, const char* name, uint64_t bytes, const std::string& more = "") {
  *text += fmt::format("  {:<16}{:>12}{}\n", name, in_units(bytes), more);
}

std::string as_text(const Snapshot& snapshot) {
  std::string text = fmt::format("{} ({}), annex {}\n", snapshot.program, snapshot.process, snapshot.version);
  add_line(&text, "resident", snapshot.resident, fmt::format("  peak {}", in_units(snapshot.peak_resident)));
  add_line(&text, "live", snapshot.used,
           fmt::format("  of which {} in {} spans", in_units(snapshot.used_spans), snapshot.span_count));
  add_line(&text, "slabs", snapshot.slabs);
  add_line(&text, "free in slabs", snapshot.free_in_slabs(),
           fmt::format("  touched {}", in_units(snapshot.free_touched())));
  add_line(&text, "dirty", snapshot.dirty);
  add_line(&text, "metadata", snapshot.metadata);
  add_line(&text, "committed", snapshot.committed);
  add_line(&text, "peak in use", snapshot.peak_in_use);
  text += fmt::format("  {:<16}{:>10.1f} %\n", "fragmentation", 100 * snapshot.fragmentation());
  if (snapshot.unclear_granules > 0) {
    text += fmt::format("  {} granules of 64 KiB were being changed, and are not counted\n", snapshot.unclear_granules);
  }
  const Change change;
  for (const Table& table : {class_table(snapshot, change), thread_table(snapshot, change)}) {
    text += "\n" + table.header + "\n";
    for (const TableRow& row : table.rows) text += row.text + "\n";
  }
  return text;
}

struct Options {
  pid_t process = 0;
  bool json = false;
};

}  // namespace

void add_stats(CLI::App& app, int* status) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("stats", "What the heap of a running process holds");
  command->add_option("PID", options->process, "the process")->required()->check(CLI::PositiveNumber);
  command->add_flag("--json", options->json, "as one JSON object (docs/live-view.md)");
  command->callback([=] {
    const Snapshot snapshot = take_snapshot(open_target(options->process));
    write_out(options->json ? as_json(snapshot).dump(2) + "\n" : as_text(snapshot));
    *status = kDone;
  });
}

}  // namespace annex::inspect
