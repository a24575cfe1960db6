// annex: runs a program on the Annex allocator. Reads the command line and does what it says;
// help.cpp has the manual.
#include <sys/auxv.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "help.h"
#include "library.h"
#include "message.h"
#include "preload.h"
#include "program.h"

namespace annex::cli {
namespace {

bool equal(const char* a, const char* b) { return strcmp(a, b) == 0; }

int usage_error(const char* what, const char* detail) {
  say("%s%s (see annex --help)", what, detail);
  return kUsage;
}

// Ends a command whose work is its output.
int printed() {
  if (fflush(stdout) == 0 && !ferror(stdout)) return kDone;
  say("standard output: %s", strerror(errno));
  return kCannotWrite;
}

const Flavour* find_flavour(const char* mode) {
  for (const Flavour& flavour : kFlavours) {
    if (equal(flavour.mode, mode)) return &flavour;
  }
  return nullptr;
}

// What the library is to do beside serving memory.
struct Extras {
  bool stats = false;
  bool sample = false;
};

// In the environment of the command. A rate of samples that is there already stays.
bool ask_for(const Extras& extras) {
  if (extras.stats && setenv("ANNEX_STATS", "text", 1) != 0) return false;
  return !extras.sample || (setenv("ANNEX_SAMPLE", "100", 0) == 0 && setenv("ANNEX_BACKTRACE", "1", 1) == 0);
}

int launch(const Flavour& flavour, const Extras& extras, char** command) {
  char library[PATH_MAX];
  char program[PATH_MAX];
  if (const ExitStatus status = find_program(command[0], program); status != kDone) return status;
  if (const ExitStatus status = check_preloadable(program); status != kDone) return status;
  if (!find_library(flavour, library) || !preload(library)) return kUsage;
  if (!ask_for(extras)) {
    say("no memory for the command's environment");
    return kUsage;
  }
  execvp(program, command);  // program has a slash, so this is execv, except that a file without
                             // "#!" goes to the shell
  const int error = errno;
  say("%s: %s", program, strerror(error));
  return error == ENOENT ? kNotFound : kNotExecutable;
}

int run(char** arguments) {
  // ld.so will preload nothing for a command that inherits these rights, and the command is the user's choice.
  if (getauxval(AT_SECURE) != 0) {
    say("runs nothing with more rights than its user has (set-user-ID, set-group-ID, capabilities)");
    return kUsage;
  }
  const Flavour* flavour = &kFlavours[0];
  Extras extras;
  for (; *arguments != nullptr && **arguments == '-'; ++arguments) {
    const char* option = *arguments;
    const char* mode = nullptr;
    if (equal(option, "--")) {
      ++arguments;
      break;
    }
    if (equal(option, "--help") || equal(option, "-h")) {
      print_usage(stdout);
      return printed();
    }
    if (equal(option, "--stats")) {
      extras.stats = true;
    } else if (equal(option, "--sample")) {
      extras.sample = true;
    } else if (equal(option, "--mode")) {
      mode = *++arguments;
      if (mode == nullptr) return usage_error("--mode needs a value: shared, solo, offload or hardened", "");
    } else if (strncmp(option, "--mode=", 7) == 0) {
      mode = option + 7;
    } else {
      return usage_error("unknown option of run: ", option);
    }
    if (mode != nullptr && (flavour = find_flavour(mode)) == nullptr) {
      say("unknown mode '%s': shared, solo, offload or hardened", mode);
      return kUsage;
    }
  }
  if (*arguments == nullptr) return usage_error("run needs a command", "");
  return launch(*flavour, extras, arguments);
}

int help(char** arguments) {
  const char* topic = *arguments;
  if (topic == nullptr) {
    print_usage(stdout);
  } else if (equal(topic, "env")) {
    print_environment(stdout);
  } else {
    return usage_error("no help about ", topic);
  }
  return printed();
}

int main(char** arguments) {
  if (*arguments == nullptr) {
    print_usage(stderr);
    return kUsage;
  }
  const char* command = *arguments++;
  if (equal(command, "run")) return run(arguments);
  if (equal(command, "help") || equal(command, "--help") || equal(command, "-h")) return help(arguments);
  if (equal(command, "--version") || equal(command, "version")) {
    print_version(stdout);
    return printed();
  }
  return usage_error("unknown command: ", command);
}

}  // namespace
}  // namespace annex::cli

int main(int, char** arguments) {
  // An empty argument vector is allowed by exec.
  return annex::cli::main(*arguments == nullptr ? arguments : arguments + 1);
}
