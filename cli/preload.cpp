// LD_PRELOAD: see preload.h.
#include "preload.h"

#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "message.h"

namespace annex::cli {
namespace {

// One of the libraries in LD_PRELOAD.
struct Entry {
  const char* path;
  int length;

  // The file's name is what is behind the last slash.
  bool name_contains(const char* part) const {
    const auto* slash = static_cast<const char*>(memrchr(path, '/', static_cast<size_t>(length)));
    const char* name = slash != nullptr ? slash + 1 : path;
    return memmem(name, static_cast<size_t>(path + length - name), part, strlen(part)) != nullptr;
  }
};

// Two of our libraries in one process would be two allocators, of which the first serves and the second idles.
bool is_annex(const Entry& entry) { return entry.name_contains("libannex"); }

// Allocators, sanitizers' among them, that are known to be preloaded.
bool is_allocator(const Entry& entry) {
  for (const char* name : {"jemalloc", "tcmalloc", "mimalloc", "snmalloc", "rpmalloc", "tbbmalloc", "hoard", "scalloc",
                           "scudo", "hardened_malloc", "libmesh", "libasan", "libtsan", "liblsan", "libclang_rt"}) {
    if (entry.name_contains(name)) return true;
  }
  return false;
}

// What LD_PRELOAD is to hold, for free(); nullptr when there is no memory.
char* list_with(const char* library) {
  const char* old = getenv("LD_PRELOAD");
  if (old == nullptr) old = "";
  auto* const list = static_cast<char*>(malloc(strlen(old) + 1 + strlen(library) + 1));
  if (list == nullptr) return nullptr;
  char* end = list;
  while (*old != '\0') {
    const size_t length = strcspn(old, ": ");
    const Entry entry = {old, static_cast<int>(length)};
    if (length > 0 && !is_annex(entry)) {
      if (is_allocator(entry)) {
        say("warning: LD_PRELOAD has another allocator in front, which serves the program instead: %.*s", entry.length,
            entry.path);
      }
      end = static_cast<char*>(mempcpy(end, old, length));
      *end++ = ':';
    }
    old += length;
    if (*old != '\0') ++old;
  }
  strcpy(end, library);
  return list;
}

}  // namespace

bool preload(const char* library) {
  char* const list = list_with(library);
  const bool done = list != nullptr && setenv("LD_PRELOAD", list, 1) == 0;
  if (!done) say("no memory for LD_PRELOAD");
  free(list);
  return done;
}

}  // namespace annex::cli
