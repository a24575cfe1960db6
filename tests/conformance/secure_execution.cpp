// Says whether the kernel started it in secure execution, and whether the limit of ANNEX_MAX_HEAP holds: the program
// that secure_execution.py gives rights to.
#include <sys/auxv.h>

#include <cstdio>
#include <cstdlib>

#include "common/opaque.h"

int main() {
  void* block = annex_test::opaque(std::malloc(std::size_t{64} << 20));
  std::printf("%s, %s\n", getauxval(AT_SECURE) != 0 ? "secure" : "plain", block != nullptr ? "no limit" : "limited");
  std::free(block);
}
