// LD_PRELOAD: see preload.h.
#include "preload.h"

#include <cstdlib>
#include <cstring>

#include "message.h"

namespace annex::cli {
namespace {

// Two of our libraries in one process would be two allocators, of which the first serves and the
// second idles.
bool is_annex(const char* entry, size_t length) {
  static constexpr char kPrefix[] = "libannex";
  const char* name = entry;
  for (size_t i = 0; i < length; ++i) {
    if (entry[i] == '/') name = entry + i + 1;
  }
  const auto rest = static_cast<size_t>(entry + length - name);
  return rest >= strlen(kPrefix) && strncmp(name, kPrefix, strlen(kPrefix)) == 0;
}

}  // namespace

bool preload(const char* library) {
  const char* old = getenv("LD_PRELOAD");
  if (old == nullptr) old = "";
  auto* value = static_cast<char*>(malloc(strlen(library) + 1 + strlen(old) + 1));
  if (value == nullptr) {
    say("no memory for LD_PRELOAD");
    return false;
  }
  char* end = stpcpy(value, library);
  while (*old != '\0') {
    const size_t length = strcspn(old, ": ");
    if (length > 0 && !is_annex(old, length)) {
      *end++ = ':';
      end = static_cast<char*>(mempcpy(end, old, length));
    }
    old += length;
    if (*old != '\0') ++old;
  }
  *end = '\0';
  const bool done = setenv("LD_PRELOAD", value, 1) == 0;
  if (!done) say("no memory for LD_PRELOAD");
  free(value);
  return done;
}

}  // namespace annex::cli
