// The program to run: see program.h.
#include "program.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "elf.h"

namespace annex::cli {
namespace {

constexpr int kMaxScripts = 5;  // scripts run by scripts; the kernel gives up at the same depth

const char* base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

bool starts_with(const char* text, const char* prefix) { return strncmp(text, prefix, strlen(prefix)) == 0; }

// 0, or the errno that execve would fail with for want of a file or of the right to execute it.
int executable_error(const char* path) {
  struct stat status;
  if (stat(path, &status) != 0) return errno;
  if (S_ISDIR(status.st_mode)) return EISDIR;
  if (!S_ISREG(status.st_mode)) return EACCES;
  return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

// Says why a path can't be executed, and returns the status for it. `role` is "" or a phrase such as "the interpreter
// of x: ".
ExitStatus refuse(const char* role, const char* name, int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      say("%s%s: not found", role, name);
      return kNotFound;
    case EISDIR:
      say("%s%s: is a directory", role, name);
      return kNotExecutable;
    case EACCES:
      say("%s%s: not executable", role, name);
      return kNotExecutable;
    default:
      say("%s%s: %s", role, name, strerror(error));
      return kNotExecutable;
  }
}

// The kernel runs a program that gains rights in "secure execution", where ld.so ignores libraries preloaded by path.
bool gains_rights(const char* path) {
  struct stat status;
  struct statvfs filesystem;
  if (stat(path, &status) != 0) return false;
  if (statvfs(path, &filesystem) == 0 && (filesystem.f_flag & ST_NOSUID) != 0) return false;
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != getuid()) return true;
  const mode_t group = S_ISGID | S_IXGRP;
  if ((status.st_mode & group) == group && status.st_gid != getgid()) return true;
  return getuid() != 0 && getxattr(path, "security.capability", nullptr, 0) > 0;
}

// A loader run as a command ("ld-linux-x86-64.so.2 PROGRAM") has no loader of its own, yet preloads.
bool is_loader(const char* path) {
  const char* name = base_name(path);
  return starts_with(name, "ld-linux") || strcmp(name, "ld.so") == 0;
}

ExitStatus check_dynamic(const char* path, const Executable& program) {
  const char* const loader = program.interpreter;
  if (const int error = executable_error(loader); error != 0) {
    char role[PATH_MAX + 32];
    snprintf(role, sizeof role, "%s needs the loader ", path);
    return refuse(role, loader, error);
  }
  if (starts_with(base_name(loader), "ld-musl")) {
    say("%s is linked with musl; Annex needs a program linked with glibc", path);
    return kUsage;
  }
  if (program.sanitizer != nullptr) {
    say("%s is built with %s, which needs a malloc of its own: run it without Annex, or build it without; "
        "--mode hardened and --sample then find what Annex finds",
        path, program.sanitizer);
    return kUsage;
  }
  if (program.own_malloc) {
    say("warning: %s has a malloc of its own linked in, which serves it instead of Annex's", path);
  }
  if (gains_rights(path)) {
    say("warning: %s gains rights when it starts (setuid, setgid or capabilities), so the loader will ignore Annex",
        path);
  }
  return kDone;
}

// Resolves what a script is run by. "#!/usr/bin/env NAME" is followed to NAME, which is the program that matters.
ExitStatus find_interpreter(const char* script, const Executable& header, char (&path)[PATH_MAX]) {
  char role[PATH_MAX + 32];
  snprintf(role, sizeof role, "the interpreter of %s: ", script);
  const char* argument = header.argument;
  const bool plain_name = *argument != '\0' && *argument != '-' && strpbrk(argument, " \t=") == nullptr;
  if (strcmp(base_name(header.interpreter), "env") == 0 && plain_name) {
    return find_program(argument, path);
  }
  snprintf(path, sizeof path, "%s", header.interpreter);
  const int error = executable_error(path);
  return error == 0 ? kDone : refuse(role, path, error);
}

// As execvp does. 0, or the errno that tells why there is no such program.
int look_up(const char* command, char (&path)[PATH_MAX]) {
  if (*command == '\0') return ENOENT;
  if (strchr(command, '/') != nullptr) {
    snprintf(path, sizeof path, "%s", command);
    return executable_error(path);
  }
  char standard[256] = "/bin:/usr/bin";
  const char* search = getenv("PATH");
  if (search == nullptr) {
    confstr(_CS_PATH, standard, sizeof standard);
    search = standard;
  }
  int best_error = ENOENT;  // something there that can't be executed tells more than nothing there
  for (const char* entry = search;; ++entry) {
    const size_t length = strcspn(entry, ":");
    if (length == 0) {  // an empty entry is the current directory
      snprintf(path, sizeof path, "./%s", command);
    } else {
      snprintf(path, sizeof path, "%.*s/%s", static_cast<int>(length), entry, command);
    }
    const int error = executable_error(path);
    if (error == 0) return 0;
    if (error == EACCES) best_error = error;
    entry += length;
    if (*entry == '\0') break;
  }
  return best_error;
}

}  // namespace

ExitStatus find_program(const char* command, char (&path)[PATH_MAX]) {
  const int error = look_up(command, path);
  return error == 0 ? kDone : refuse("", *command != '\0' ? command : "''", error);
}

bool is_program(const char* command) {
  char path[PATH_MAX];
  return look_up(command, path) == 0;
}

ExitStatus check_preloadable(const char* path) {
  char current[PATH_MAX];
  snprintf(current, sizeof current, "%s", path);
  for (int depth = 0; depth < kMaxScripts; ++depth) {
    const Executable header = inspect(current);
    switch (header.kind) {
      case Kind::kUnreadable:
        return kDone;  // the kernel will say
      case Kind::kText:
        snprintf(current, sizeof current, "/bin/sh");
        continue;
      case Kind::kScript: {
        char next[PATH_MAX];
        if (const ExitStatus status = find_interpreter(current, header, next); status != kDone) return status;
        memcpy(current, next, sizeof current);
        continue;
      }
      case Kind::kDynamic:
        return check_dynamic(current, header);
      case Kind::kStatic:
        if (is_loader(current)) return kDone;
        say("%s is statically linked, so no library can be preloaded into it; link it with libannex.a instead",
            current);
        return kUsage;
      case Kind::kOtherClass:
        say("%s is a %d-bit program; this Annex is %d-bit", current, sizeof(void*) == 8 ? 32 : 64,
            static_cast<int>(8 * sizeof(void*)));
        return kUsage;
      case Kind::kOtherMachine:
        say("%s is a program for another processor", current);
        return kUsage;
    }
  }
  say("%s: more than %d scripts run by one another", path, kMaxScripts - 1);
  return kNotExecutable;
}

}  // namespace annex::cli
