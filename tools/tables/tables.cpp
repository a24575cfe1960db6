// Prints a table of the documentation as Markdown: `annex-tables size-classes > docs/size-classes.md`, `annex-tables
// environment > docs/environment.md`. A test compares the committed files with what this prints.
#include <cstdio>
#include <cstring>

#include "core/size_class.h"
#include "core/slab_record.h"

namespace {

void size_classes() {
  printf(
      "# Size classes\n\n"
      "Made by `build/release/annex-tables size-classes`; the rule is in `src/core/size_class.h`.\n\n"
      "*waste*: the most that a request served by this class leaves unused, in per cent of the block. *tail*: what "
      "the\n"
      "blocks leave unused at the end of a slab, in per cent of the slab (address space; resident only with huge "
      "pages).\n\n"
      "| class | block, bytes | smallest request | waste, %% | slab, KiB | blocks | tail, %% | aligned to |\n"
      "|---:|---:|---:|---:|---:|---:|---:|---:|\n");
  double worst = 0;
  for (annex::SizeClass c = 0; c < annex::kClasses; ++c) {
    const size_t size = annex::block_size(c);
    const size_t smallest = c == 0 ? 0 : annex::block_size(c - 1) + 1;
    const double waste = 100.0 * static_cast<double>(size - smallest) / static_cast<double>(size);
    const size_t slab = annex::slab_granules(c) * annex::kGranule;
    const size_t blocks = annex::slab_capacity(c);
    const double tail = 100.0 * static_cast<double>(slab - blocks * size) / static_cast<double>(slab);
    if (smallest > 128 && waste > worst) worst = waste;
    printf("| %d | %zu | %zu | %.1f | %zu | %zu | %.1f | %zu |\n", c, size, smallest, waste, slab / 1024, blocks, tail,
           size & -size);
  }
  printf("\nWorst waste of requests above 128 bytes: %.1f %%.\n", worst);
}

void environment() {
  printf(
      "# Environment variables\n\n"
      "Made by `build/release/annex-tables environment` from `src/os/options.def`; `annex help env` prints the same. "
      "A\n"
      "value that is not understood, or a name that begins with `ANNEX_` and is none of these: one warning line on "
      "standard\n"
      "error, and the default is used. A program that gains rights when it starts (set-user-ID, set-group-ID, file\n"
      "capabilities) reads none of them.\n\n"
      "| variable | default | values | what it does |\n|---|---|---|---|\n");
#define ANNEX_OPTION(identifier, variable, standard, values, description) \
  printf("| `%s` | %s | %s | %s |\n", variable, *standard ? standard : "(empty)", values, description);
#include "os/options.def"
#undef ANNEX_OPTION
  printf(
      "\n## Where messages go\n\n"
      "Warnings, fatal errors and statistics go to descriptor 2 as long as that is standard error. A program may close "
      "it, and\n"
      "the next file that it opens is descriptor 2 then: its data would have the library's words in them. So, before "
      "each\n"
      "message, the descriptor is compared with what it was when the library started:\n\n"
      "| descriptor 2 is | a message is |\n|---|---|\n"
      "| the file that it was | written |\n"
      "| a terminal, `/dev/null` or other character device; a pipe | written: the program turned it there |\n"
      "| a regular file opened for appending | written: a log, of which nothing is overwritten |\n"
      "| any other file, a socket among them, or closed | left out |\n"
      "| anything, where it was closed at the start | left out |\n\n"
      "A fatal error ends the process all the same. What that costs: a program that turns descriptor 2 to a file "
      "opened "
      "without\n"
      "O_APPEND (`exec 2>file` in a shell, GoogleTest's capture of standard error) does not get the message; open it "
      "with\n"
      "O_APPEND (`2>>file`), or give `ANNEX_STATS_FILE`. No descriptor is kept, and there is a system call (fstat) on "
      "the way\n"
      "to a message only. Before a program installs a system call filter, which might end it for that call, it is made "
      "once\n"
      "more, and its answer holds from then on; a filter installed by an instruction of the program's own, not by "
      "libc's\n"
      "functions, is not seen. `malloc_stats` is the program's own call and writes to descriptor 2 as glibc's does.\n");
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 2 && strcmp(arguments[1], "size-classes") == 0) {
    size_classes();
  } else if (count == 2 && strcmp(arguments[1], "environment") == 0) {
    environment();
  } else {
    fprintf(stderr, "usage: annex-tables size-classes|environment\n");
    return 2;
  }
  return 0;
}
