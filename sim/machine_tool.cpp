// annex-machine: reads a machine file and prints it whole, as JSON, or says what is wrong with it.
//
//   annex-machine --presets DIR FILE      the machine with all its parameters; exit status 2 where it is wrong
//   annex-machine --parameters            every parameter there is, with unit, bounds, meaning and source, as Markdown
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "machine/machine_file.h"

// What CLI11 or fmt throw nobody could mend here.
int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape)
  using namespace annex::sim;
  CLI::App app("Reads a simulated machine's description and prints it whole, as JSON.", "annex-machine");
  std::string file;
  std::string presets;
  bool parameters = false;
  app.add_option("file", file, "machine description (TOML)");
  app.add_option("--presets", presets, "folder of the machines that `base` may name");
  app.add_flag("--parameters", parameters, "print every parameter with its unit, bounds, meaning and source instead");
  CLI11_PARSE(app, argc, argv);
  if (parameters) {
    fmt::print("{}", describe_parameters());
    return 0;
  }
  if (file.empty()) {
    fmt::print(stderr, "annex-machine: name a machine file (or --parameters); --help says more\n");
    return 2;
  }
  Machine machine;
  const auto problems = read_machine(file, presets, machine);
  for (const std::string& problem : problems) fmt::print(stderr, "annex-machine: {}\n", problem);
  if (!problems.empty()) return 2;
  fmt::print("{}\n", to_json(machine).dump(2));
  return 0;
}
