// The launcher's texts: see help.h. The table of variables is the library's own (os/options.def).
#include "help.h"

#include <cstring>

#include "annex/annex.h"
#include "commit.h"

namespace annex::cli {
namespace {

constexpr size_t kWidth = 79;  // of a terminal, less one
constexpr size_t kIndent = 6;

// Prints the text broken at spaces, each line indented.
void print_wrapped(FILE* out, const char* text) {
  size_t column = 0;
  while (*text != '\0') {
    const size_t word = strcspn(text, " ");
    if (column > 0 && column + 1 + word > kWidth) {
      fputc('\n', out);
      column = 0;
    }
    column += static_cast<size_t>(
        fprintf(out, "%*s%.*s", column == 0 ? static_cast<int>(kIndent) : 1, "", static_cast<int>(word), text));
    text += word;
    text += strspn(text, " ");
  }
  fputc('\n', out);
}

void print_option(FILE* out, const char* name, const char* standard, const char* values, const char* description) {
  fprintf(out, "\n  %s  (default: %s)\n", name, *standard == '\0' ? "empty" : standard);
  fprintf(out, "%*svalues: %s\n", static_cast<int>(kIndent), "", values);
  print_wrapped(out, description);
}

}  // namespace

void print_usage(FILE* out) {
  fputs(
      "Usage: annex run [--mode MODE] [--stats] [--sample] [--] COMMAND [ARGUMENT...]\n"
      "       annex profile [OPTIONS] -- COMMAND [ARGUMENT...]\n"
      "       annex top | stats | trim PID\n"
      "       annex help [env]\n"
      "       annex --version\n"
      "\n"
      "Runs a dynamically linked program, and the programs it starts, on the Annex\n"
      "memory allocator in place of the C library's.\n"
      "\n"
      "  --mode MODE  the flavour of the allocator:\n"
      "                 shared    for any program (the default)\n"
      "                 solo      for single-threaded programs: smaller and faster\n"
      "                           there; still correct, though slower, once a second\n"
      "                           thread starts\n"
      "                 offload   for programs with a core to spare: allocation and\n"
      "                           the page faults of a growing heap move to a thread\n"
      "                           on a core of its own\n"
      "                 hardened  for programs that may be attacked, or have bugs to\n"
      "                           be found: invalid and double frees, overflows and\n"
      "                           writes to freed memory end the process with one\n"
      "                           line\n"
      "  --stats      each process prints its memory statistics when it exits, to\n"
      "               standard error (or to ANNEX_STATS_FILE)\n"
      "  --sample     up to a hundred small blocks a second lie between guard pages:\n"
      "               an overflow, or a use after free, of one of them ends the\n"
      "               process with a report (sets ANNEX_SAMPLE=100, unless it is set,\n"
      "               and ANNEX_BACKTRACE=1)\n"
      "\n"
      "For example:\n"
      "  annex run -- ./server --port 80\n"
      "  annex run --mode solo --stats -- gcc -c big.c\n"
      "\n"
      "`annex profile` runs a program with a heap profile: what is allocated where,\n"
      "what is still in use, and what keeps pages resident. top, stats and trim look\n"
      "into a running process. Each says more with --help.\n"
      "\n"
      "`annex help env` lists the environment variables that tune the allocator.\n"
      "\n"
      "Exit status: the command's own, or, where it did not start,\n"
      "  1    this text, or another that was asked for, could not be written\n"
      "  2    wrong usage, or a program that can't be preloaded (static, 32-bit,\n"
      "       another C library, built with a sanitizer), or Annex's library is not\n"
      "       where it belongs\n"
      "  126  the command is there but is not executable\n"
      "  127  the command, or the interpreter it names, was not found\n",
      out);
}

void print_environment(FILE* out) {
  fputs(
      "Environment variables read by the Annex library. A wrong value gives one\n"
      "line of warning, and the default is used; so does a name that is none of them.\n"
      "A program that gains rights when it starts (set-user-ID, set-group-ID, file\n"
      "capabilities) reads none of them.\n"
      "\n"
      "Messages and statistics go to standard error: to descriptor 2 while it is the\n"
      "file that it was when the program started, or a terminal or other character\n"
      "device, a pipe, or a file opened for appending. Where it is anything else, such\n"
      "as a data file opened after descriptor 2 was closed, they are left out.\n",
      out);
#define ANNEX_OPTION(identifier, name, standard, values, description) \
  print_option(out, name, standard, values, description);
#include "os/options.def"
#undef ANNEX_OPTION
}

void print_version(FILE* out) {
  fprintf(out, "annex %d.%d.%d%s\n", ANNEX_VERSION_MAJOR, ANNEX_VERSION_MINOR, ANNEX_VERSION_PATCH, kCommit);
}

}  // namespace annex::cli
