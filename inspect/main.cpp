// annex-inspect: heap profiles, and a look at processes that run on Annex. The launcher starts it: `annex profile` is
// `annex-inspect profile`, and so for top, stats and trim.
#include <CLI/CLI.hpp>

#include "commands.h"
#include "message.h"

namespace {

int status = annex::inspect::kDone;

}  // namespace

int main(int count, char** arguments) {
  using namespace annex::inspect;
  CLI::App app("Heap profiles of programs on Annex, and a look at running ones.", "annex");
  app.require_subcommand(1);
  app.option_defaults()->always_capture_default();
  add_profile(app, &status);
  add_top(app, &status);
  add_stats(app, &status);
  add_trim(app, &status);
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    say("{} (see annex {} --help)", error.what(), count > 1 ? arguments[1] : "");
    return kUsage;
  } catch (const Failure& failure) {
    say("{}", failure.what());
    return failure.status;
  }
  return status;
}
