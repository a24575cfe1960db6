// Finds out which allocator serves this process; see flavour.h.
#include "common/flavour.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "annex/annex.h"
#include "common/opaque.h"

#ifndef ANNEX_TEST_LINKED
// Weak, so that the same objects also link and run without Annex.
extern "C" {
[[gnu::weak]] decltype(annex_version) annex_version;
[[gnu::weak]] decltype(annex_owns) annex_owns;
}
#endif

namespace annex_test {
namespace {

[[noreturn]] void stop(const char* message, const char* detail) {
  fprintf(stderr, "wrong test set-up: %s%s\n", message, detail);
  _Exit(2);
}

Flavour expected() {
  const char* name = getenv("EXPECT_FLAVOUR");
  if (name == nullptr) stop("set EXPECT_FLAVOUR to shared, solo, offload, hardened or glibc", "");
  if (std::strcmp(name, "shared") == 0) return Flavour::kShared;
  if (std::strcmp(name, "solo") == 0) return Flavour::kSolo;
  if (std::strcmp(name, "offload") == 0) return Flavour::kOffload;
  if (std::strcmp(name, "hardened") == 0) return Flavour::kHardened;
  if (std::strcmp(name, "glibc") == 0) return Flavour::kGlibc;
  stop("unknown EXPECT_FLAVOUR ", name);
}

}  // namespace

Flavour flavour() {
  static const Flavour value = expected();
  return value;
}

const char* version_suffix() {
  switch (flavour()) {
    case Flavour::kSolo:
      return " solo";
    case Flavour::kOffload:
      return " offload";
    case Flavour::kHardened:
      return " hardened";
    default:
      return " shared";
  }
}

void require_flavour() {
#ifdef ANNEX_TEST_LINKED
  const bool present = true;
#else
  const bool present = annex_version != nullptr && annex_owns != nullptr;
#endif
  if (flavour() == Flavour::kGlibc) {
    if (present) stop("EXPECT_FLAVOUR is glibc, but Annex is in the process", "");
    return;
  }
  if (!present) stop("Annex is not in the process", "");
  const char* suffix = version_suffix();
  const char* version = annex_version();
  if (std::strlen(version) < std::strlen(suffix) ||
      std::strcmp(version + std::strlen(version) - std::strlen(suffix), suffix) != 0) {
    stop("another flavour is in the process: ", version);
  }
#ifdef ANNEX_TEST_REPLACED
  void* block = opaque(malloc(100));
  const int owned = annex_owns(block);
  free(block);
  if (!owned) stop("malloc is not Annex's", "");
#endif
}

}  // namespace annex_test
