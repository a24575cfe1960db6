// The texts that the launcher prints on request.
#pragma once

#include <cstdio>

namespace annex::cli {

void print_usage(FILE* out);

// The table of the library's environment variables, wrapped for a terminal.
void print_environment(FILE* out);

void print_version(FILE* out);

}  // namespace annex::cli
