// Which allocator this test process is meant to run on, and whether it really does.
//
// ctest sets EXPECT_FLAVOUR to shared, solo, offload, hardened or glibc. The last runs the conformance tests on the C
// library's own malloc, which shows that they demand what it does; tests of what Annex does
// otherwise by design skip there.
#pragma once

namespace annex_test {

enum class Flavour { kShared, kSolo, kOffload, kHardened, kGlibc };

// Ends the process with a message where EXPECT_FLAVOUR is missing or another allocator than that
// one serves malloc.
void require_flavour();

Flavour flavour();
// " shared", " solo", " offload", " hardened": how annex_version() ends.
const char* version_suffix();
inline bool on_glibc() { return flavour() == Flavour::kGlibc; }

}  // namespace annex_test

// At the start of a test that asks for what Annex does and glibc does not.
#define SKIP_ON_GLIBC(reason)                                     \
  do {                                                            \
    if (annex_test::on_glibc()) GTEST_SKIP() << "glibc: " reason; \
  } while (false)
