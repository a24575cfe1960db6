// Privileges: see privileges.h.
#include "os/privileges.h"

#include <fcntl.h>

#include <cstddef>
#include <cstring>

#include "os/message.h"
#include "os/system_call.h"

namespace annex::os {

namespace {

constexpr uint64_t kHashStart = 0xcbf29ce484222325;
constexpr const char* kFilters[] = {"Seccomp", "Seccomp_filters"};
constexpr const char* kRest[] = {"Uid",    "Gid",    "Groups", "CapInh",    "CapPrm",
                                 "CapEff", "CapBnd", "CapAmb", "NoNewPrivs"};
constexpr const char* kNamespaces[] = {
    "cgroup", "ipc", "mnt", "net", "pid", "pid_for_children", "time", "time_for_children", "user", "uts"};

void hash_in(uint64_t* hash, const char* bytes, size_t length) {  // FNV-1a
  for (size_t i = 0; i < length; ++i) *hash = (*hash ^ static_cast<unsigned char>(bytes[i])) * 0x100000001b3;
}

// /proc/self/task/THREAD/ENTRY.
struct Path {
  char name[80];

  Path(long thread, const char* directory, const char* entry) {
    Text text(name, sizeof name - 1);
    text << "/proc/self/task/" << static_cast<uint64_t>(thread) << directory << entry;
    name[text.stored()] = '\0';
  }
};

// The lines of a status file, of any length (there may be 65,536 groups), come in pieces; this takes them character by
// character and hashes those that matter.
class StatusHash {
 public:
  explicit StatusHash(Privileges* out) : out_(out) {}

  void add(char c) {
    if (c == '\n') {
      length_ = 0;
      into_ = nullptr;
      in_name_ = true;
    } else if (!in_name_) {
      if (into_ != nullptr) hash_in(into_, &c, 1);
    } else if (c == ':') {
      in_name_ = false;
      into_ = place();
    } else if (length_ < sizeof name_) {
      name_[length_++] = c;
    }
  }

 private:
  bool is(const char* name) const { return length_of(name) == length_ && memcmp(name_, name, length_) == 0; }

  uint64_t* place() const {
    for (const char* name : kFilters) {
      if (is(name)) return &out_->filters;
    }
    for (const char* name : kRest) {
      if (is(name)) return &out_->rest;
    }
    return nullptr;
  }

  Privileges* out_;
  uint64_t* into_ = nullptr;
  char name_[16];
  size_t length_ = 0;
  bool in_name_ = true;
};

void add_status(long thread, Privileges* out) {
  const Path path(thread, "/status", "");
  const long file = system_call(SYS_openat, AT_FDCWD, reinterpret_cast<long>(path.name), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  out->known = true;
  StatusHash hash(out);
  char piece[512];
  for (;;) {
    const long length = system_call(SYS_read, file, reinterpret_cast<long>(piece), sizeof piece);
    if (length <= 0) break;
    for (long i = 0; i < length; ++i) hash.add(piece[i]);
  }
  system_call(SYS_close, file);
}

void add_namespaces(long thread, Privileges* out) {
  for (const char* name : kNamespaces) {
    const Path path(thread, "/ns/", name);
    char target[64];
    const long length = system_call(SYS_readlinkat, AT_FDCWD, reinterpret_cast<long>(path.name),
                                    reinterpret_cast<long>(target), sizeof target);
    hash_in(&out->rest, target, length > 0 ? static_cast<size_t>(length) : 0);
    hash_in(&out->rest, "/", 1);
  }
}

}  // namespace

Privileges privileges_of(long thread) {
  Privileges found = {false, kHashStart, kHashStart};
  add_status(thread, &found);
  add_namespaces(thread, &found);
  return found;
}

}  // namespace annex::os
