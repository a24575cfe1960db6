// The library's settings, read from the environment. The table of variables is options.def.
//
// Synchronization: read_options runs once, under the page heap's lock or before a second thread exists; read-only
// after.
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/cpu_set.h"

namespace annex::os {

enum class HugePages : uint8_t { kAuto, kNever, kAlways };
enum class Background : uint8_t { kAuto, kNone, kAll };
enum class Protocol : uint8_t { kStash, kQueue, kHandshake };
enum class Deepbind : uint8_t { kDrop, kKeep };
enum class StatsFormat : uint8_t { kOff, kText, kJson };

struct Options {
  int64_t purge_delay_ms = 1000;  // < 0: never
  size_t reserve_bytes = size_t{1} << 40;
  size_t max_heap_bytes = 0;  // 0: no limit
  HugePages huge_pages = HugePages::kAuto;
  StatsFormat stats = StatsFormat::kOff;
  Protocol protocol = Protocol::kStash;
  size_t support_cores = 0;  // 0: the library chooses
  CpuSet support_cpus;       // none: the library chooses
  Background background = Background::kAuto;
  bool verbose = false;
  size_t sample = 0;  // blocks a second, at most
  bool backtrace = false;
  Deepbind deepbind = Deepbind::kDrop;
  bool zero_freed = true;
  const char* stats_file = "";
  const char* profile = "";  // no profile
  size_t profile_rate = 512 * 1024;
};

extern constinit Options options;

// Reads the environment into `options`. A value that can't be used: one warning line, and the default stays.
void parse_environment();

// The same, once: the first time that there is an environment (it appears only during libc's own start). A process that
// gained rights when it started (set-user-ID, set-group-ID, file capabilities) keeps all defaults.
void read_options();

}  // namespace annex::os
