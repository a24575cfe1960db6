// annex: the launcher, which runs a program on the Annex allocator. Reads the command line and does what it says.
//
//   main.cpp                the commands: run, help, version; and those that annex-inspect has
//   program.cpp, elf.cpp    run: finds the program, and judges whether a preloaded library will reach it
//   library.cpp             run: finds the library
//   preload.cpp             run: puts it into LD_PRELOAD
//   help.cpp                help, version: the texts
//   message.cpp             error lines and exit statuses
#include <sys/auxv.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "help.h"
#include "library.h"
#include "message.h"
#include "os/nearest.h"
#include "preload.h"
#include "program.h"

namespace annex::cli {
namespace {

bool equal(const char* a, const char* b) { return strcmp(a, b) == 0; }

int usage_error(const char* what, const char* detail = "") {
  say("%s%s (see annex --help)", what, detail);
  return kUsage;
}

// With what was meant, in two parts.
int usage_error(const char* what, const char* detail, const char* meant, const char* more) {
  say("%s%s (did you mean %s%s?)", what, detail, meant, more);
  return kUsage;
}

constexpr char kModesInWords[] = "shared, solo, offload or hardened";
constexpr const char* kModes[] = {kFlavours[0].mode, kFlavours[1].mode, kFlavours[2].mode, kFlavours[3].mode};
static_assert(std::size(kModes) == std::size(kFlavours));
constexpr const char* kRunOptions[] = {"--mode", "--stats", "--sample", "--help"};
// Those of annex-inspect, a program of its own: it needs more than libc.
constexpr const char* kInspecting[] = {"profile", "top", "stats", "trim"};
constexpr const char* kCommands[] = {"run",  "profile", "top",    "stats",    "trim",
                                     "help", "version", "--help", "--version"};

int unknown_mode(const char* mode) {
  if (const char* meant = os::nearest(mode, kModes))
    say("unknown mode '%s': did you mean %s?", mode, meant);
  else
    say("unknown mode '%s': %s", mode, kModesInWords);
  return kUsage;
}

int unknown_option(const char* option) {
  constexpr char kWhat[] = "unknown option of run: ";
  if (const char* mode = os::nearest(option + strspn(option, "-"), kModes)) {
    return usage_error(kWhat, option, "--mode ", mode);
  }
  if (const char* meant = os::nearest(option, kRunOptions)) return usage_error(kWhat, option, meant, "");
  return usage_error(kWhat, option);
}

int unknown_command(const char* command) {
  constexpr char kWhat[] = "unknown command: ";
  if (const char* option = os::nearest(command, kRunOptions); option != nullptr && !equal(option, "--help")) {
    return usage_error(kWhat, command, "annex run ", option);
  }
  if (const char* meant = os::nearest(command, kCommands)) return usage_error(kWhat, command, "annex ", meant);
  if (is_program(command)) return usage_error(kWhat, command, "annex run ", command);
  return usage_error(kWhat, command);
}

// Ends a command whose work is its output; the exit status.
int finish_output() {
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

// What the library is to do besides serving memory.
struct Extras {
  bool stats = false;
  bool sample = false;
};

// Asks the library for them, in the environment of the command. A rate of samples that is set there already stays.
// False where there is no memory.
bool set_environment(const Extras& extras) {
  if (extras.stats && setenv("ANNEX_STATS", "text", 1) != 0) return false;
  return !extras.sample || (setenv("ANNEX_SAMPLE", "100", 0) == 0 && setenv("ANNEX_BACKTRACE", "1", 1) == 0);
}

// Does not return where the command starts; else the exit status.
int launch(const Flavour& flavour, const Extras& extras, char** command) {
  char library[PATH_MAX];
  char program[PATH_MAX];
  if (const ExitStatus status = find_program(command[0], program); status != kDone) return status;
  if (const ExitStatus status = check_preloadable(program); status != kDone) return status;
  if (!find_library(flavour, library) || !preload(library)) return kUsage;
  if (!set_environment(extras)) {
    say("no memory for the command's environment");
    return kUsage;
  }
  execvp(program, command);  // as execv, since program has a slash; but a file without "#!" goes to the shell
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
      return finish_output();
    }
    if (equal(option, "--stats")) {
      extras.stats = true;
    } else if (equal(option, "--sample")) {
      extras.sample = true;
    } else if (equal(option, "--mode")) {
      mode = *++arguments;
      if (mode == nullptr) return usage_error("--mode needs a value: ", kModesInWords);
    } else if (strncmp(option, "--mode=", 7) == 0) {
      mode = option + 7;
    } else {
      return unknown_option(option);
    }
    if (mode != nullptr && (flavour = find_flavour(mode)) == nullptr) return unknown_mode(mode);
  }
  if (*arguments == nullptr) return usage_error("run needs a command");
  return launch(*flavour, extras, arguments);
}

// annex profile is annex-inspect profile. Does not return where that starts.
int inspect(char** command) {
  char program[PATH_MAX];
  if (!find_beside_launcher("annex-inspect", program)) return kUsage;
  char** const all = command - 1;  // the launcher's own name
  execv(program, all);
  const int error = errno;
  if (error == ENOENT) {
    say("%s is in annex-inspect, which is not here: %s (built where its libraries are: tools/install-deps "
        "tools/apt.txt)",
        *command, program);
  } else {
    say("%s: %s", program, strerror(error));
  }
  return error == ENOENT ? kNotFound : kNotExecutable;
}

int help(char** arguments) {
  const char* topic = *arguments;
  if (topic == nullptr || equal(topic, "run")) {
    print_usage(stdout);
  } else if (equal(topic, "env")) {
    print_environment(stdout);
  } else {
    return usage_error("no help about ", topic, "annex help env", "");
  }
  return finish_output();
}

int main(char** arguments) {
  if (*arguments == nullptr) {
    print_usage(stderr);
    return kUsage;
  }
  const char* command = *arguments++;
  if (equal(command, "run")) return run(arguments);
  for (const char* other : kInspecting) {
    if (equal(command, other)) return inspect(arguments - 1);
  }
  if (equal(command, "help") || equal(command, "--help") || equal(command, "-h")) return help(arguments);
  if (equal(command, "--version") || equal(command, "version")) {
    print_version(stdout);
    return finish_output();
  }
  return unknown_command(command);
}

}  // namespace
}  // namespace annex::cli

int main(int, char** arguments) {
  // An empty argument vector is allowed by exec.
  return annex::cli::main(*arguments == nullptr ? arguments : arguments + 1);
}
