// A C++ program that itself calls neither malloc nor new: all its memory is taken inside libstdc++ and libc.
#include <annex/annex.h>

#include <cstdio>
#include <iostream>
#include <sstream>

int main() {
  std::ostringstream text;
  for (int i = 0; i < 100000; ++i) text << i << ' ';
  annex_stats_t stats;
  if (annex_stats(&stats) != 0 || stats.used < 100000) {
    std::fprintf(stderr, "memory of a stream of %zu bytes did not come from Annex\n",
                 static_cast<size_t>(text.tellp()));
    return 1;
  }
  std::cout << annex_version() << '\n';
}
