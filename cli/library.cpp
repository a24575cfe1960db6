// Finding the library: see library.h.
#include "library.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "message.h"

namespace annex::cli {
namespace {

// From the launcher's directory, nearest first. ANNEX_LIB_FROM_BIN is what the installation was configured with; plain
// ../lib serves one that was moved into a tree laid out otherwise.
constexpr const char* kPlaces[] = {".", ANNEX_LIB_FROM_BIN, "../lib"};

// The directory that the launcher's file is in. Where /proc isn't mounted, it is known by the path that the kernel was
// given to start the launcher.
bool own_directory(char (&directory)[PATH_MAX]) {
  const ssize_t length = readlink("/proc/self/exe", directory, sizeof directory - 1);
  if (length > 0) {
    directory[length] = '\0';
  } else {
    const auto* path = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
    if (path == nullptr || realpath(path, directory) == nullptr) return false;
  }
  char* slash = strrchr(directory, '/');
  if (slash == nullptr) return false;
  *slash = '\0';  // "" for the root directory, to which "/name" is appended all the same
  return true;
}

}  // namespace

bool find_beside_launcher(const char* name, char (&path)[PATH_MAX]) {
  char directory[PATH_MAX];
  if (!own_directory(directory)) {
    say("can't tell where the launcher itself is");
    return false;
  }
  return static_cast<size_t>(snprintf(path, sizeof path, "%s/%s", directory, name)) < sizeof path;
}

bool find_library(const Flavour& flavour, char (&path)[PATH_MAX]) {
  char directory[PATH_MAX];
  if (!own_directory(directory)) {
    say("can't tell where the launcher itself is");
    return false;
  }
  for (const char* place : kPlaces) {
    char candidate[2 * PATH_MAX];
    snprintf(candidate, sizeof candidate, "%s/%s", directory, place);
    if (realpath(candidate, path) == nullptr) continue;
    // By its plain name, not that of the version it stands for: children that start after an upgrade find it too.
    if (strlen(path) + 1 + strlen(flavour.file) >= sizeof path) continue;
    sprintf(path + strlen(path), "/%s", flavour.file);
    if (access(path, F_OK) != 0) continue;
    if (access(path, R_OK) != 0) {
      say("%s is not readable", path);
      return false;
    }
    // ld.so takes both as separators and knows no way to quote them.
    if (strpbrk(path, " :") != nullptr) {
      say("%s can't be preloaded: its path contains a space or a colon", path);
      return false;
    }
    return true;
  }
  say("%s is neither in %s/ nor in %s/%s/; annex needs its libraries beside it, or installed with it", flavour.file,
      directory, directory, ANNEX_LIB_FROM_BIN);
  return false;
}

}  // namespace annex::cli
