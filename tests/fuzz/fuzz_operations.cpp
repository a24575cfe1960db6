// The libFuzzer target: any bytes are a sequence of calls, and none may break the model.
#include <cstdio>
#include <cstdlib>

#include "fuzz/interpreter.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string failure = annex_test::interpret(data, size);
  if (!failure.empty()) {
    fprintf(stderr, "%s\n", failure.c_str());
    abort();
  }
  return 0;
}
