// Parsing of the environment: see options.h and options.def.
#include <unistd.h>

#include <cstring>

#include "os/message.h"
#include "os/nearest.h"
#include "os/options.h"

namespace annex::os {

namespace {

constexpr char kPrefix[] = "ANNEX_";
constexpr size_t kPrefixLength = sizeof kPrefix - 1;

const char* variable(const char* name) {
  const size_t length = strlen(name);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') return *entry + length + 1;
  }
  return nullptr;
}

// Digits, then nothing or one of K M G T (KiB and so on, either case, a trailing "B" or "iB" allowed).
bool parse_bytes(const char* text, size_t* result) {
  if (*text < '0' || *text > '9') return false;
  size_t value = 0;
  for (; *text >= '0' && *text <= '9'; ++text) {
    if (__builtin_mul_overflow(value, size_t{10}, &value)) return false;
    if (__builtin_add_overflow(value, static_cast<size_t>(*text - '0'), &value)) return false;
  }
  if (*text != '\0') {
    static constexpr char kUnits[] = "kmgt";
    const char* unit = strchr(kUnits, *text | 0x20);
    if (unit == nullptr) return false;
    const int shift = 10 * static_cast<int>(unit - kUnits + 1);
    if ((value << shift) >> shift != value) return false;
    value <<= shift;
    ++text;
    if (*text == 'i') ++text;
    if (*text == 'B' || *text == 'b') ++text;
  }
  if (*text != '\0') return false;
  *result = value;
  return true;
}

bool parse(const char* text, size_t* result) { return parse_bytes(text, result); }

bool parse(const char* text, int64_t* result) {
  size_t value = 0;
  if (strcmp(text, "-1") == 0) {
    *result = -1;
    return true;
  }
  if (!parse_bytes(text, &value) || value > size_t{1} << 40) return false;
  *result = static_cast<int64_t>(value);
  return true;
}

// An enumeration or a bool: the position of the word in a list.
template <class T, size_t kCount>
bool parse_word(const char* text, const char* const (&words)[kCount], T* result) {
  for (size_t i = 0; i < kCount; ++i) {
    if (strcmp(text, words[i]) == 0) {
      *result = static_cast<T>(i);
      return true;
    }
  }
  return false;
}

bool parse(const char* text, HugePages* result) {
  return parse_word<HugePages, 3>(text, {"auto", "never", "always"}, result);
}
bool parse(const char* text, Background* result) { return parse_word(text, {"auto", "0", "1"}, result); }
bool parse(const char* text, Deepbind* result) { return parse_word(text, {"drop", "keep"}, result); }
bool parse(const char* text, StatsFormat* result) { return parse_word(text, {"off", "text", "json"}, result); }
bool parse(const char* text, Protocol* result) { return parse_word(text, {"stash", "queue", "handshake"}, result); }
bool parse(const char* text, bool* result) { return parse_word(text, {"0", "1"}, result); }
bool parse(const char* text, CpuSet* result) {
  const CpuSet set = parse_cpu_list(text);
  if (text[strspn(text, "0123456789-,")] != '\0' || set.empty()) return false;
  *result = set;
  return true;
}
// A copy: some programs (nginx, redis) later overwrite the environment's memory with their title.
bool parse(const char* text, const char** result) {
  static char copies[2][4096];
  static size_t count = 0;
  if (strlen(text) >= sizeof copies[0]) return false;
  *result = strcpy(copies[count++], text);
  return true;
}

template <class T>
void read(const char* name, const char* standard, const char* values, T* result) {
  const char* text = variable(name);
  if (text == nullptr || *text == '\0' || parse(text, result)) return;
  char buffer[400];
  Text message(buffer, sizeof buffer - 1);
  message << name << "=" << text << " is not understood (" << values << "); using " << standard;
  buffer[message.stored()] = '\0';
  warn(buffer);
}

constexpr const char* kNames[] = {
#define ANNEX_OPTION(identifier, name, standard, values, description) name,
#include "os/options.def"
#undef ANNEX_OPTION
};

constexpr const char* kNamesWithoutPrefix[] = {
#define ANNEX_OPTION(identifier, name, standard, values, description) &name[kPrefixLength],
#include "os/options.def"
#undef ANNEX_OPTION
};

// Those of the tests and the laboratory.
constexpr const char* kOfOthers[] = {"ANNEX_FLOOR_FILE",     "ANNEX_FLOOR_MIB", "ANNEX_LATENCY_FILE",
                                     "ANNEX_MISUSE_SECONDS", "ANNEX_PARKED",    "ANNEX_REQUIRE_ALL",
                                     "ANNEX_TEST_EMULATOR"};

template <size_t kCount>
bool is_one_of(const char* name, const char* const (&names)[kCount]) {
  for (const char* other : names) {
    if (strcmp(name, other) == 0) return true;
  }
  return false;
}

// A name that is misspelt, or of another version, would else just do nothing.
void warn_of_unknown_names() {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (strncmp(*entry, kPrefix, kPrefixLength) != 0) continue;
    char name[64];
    const size_t length = strcspn(*entry, "=");
    if (length >= sizeof name) continue;  // none that was meant for us
    memcpy(name, *entry, length);
    name[length] = '\0';
    if (is_one_of(name, kNames) || is_one_of(name, kOfOthers)) continue;
    char buffer[200];
    Text message(buffer, sizeof buffer - 1);
    message << name << " is not a setting";
    if (const char* meant = nearest(name + kPrefixLength, kNamesWithoutPrefix)) {
      message << ": did you mean ANNEX_" << meant << "?";
    }
    message << " (annex help env lists them)";
    buffer[message.stored()] = '\0';
    warn(buffer);
  }
}

}  // namespace

void parse_environment() {
  warn_of_unknown_names();
  auto& purge_delay = options.purge_delay_ms;
  auto& huge_pages = options.huge_pages;
  auto& reserve = options.reserve_bytes;
  auto& max_heap = options.max_heap_bytes;
  auto& background = options.background;
  auto& stats = options.stats;
  auto& stats_file = options.stats_file;
  auto& profile = options.profile;
  auto& profile_rate = options.profile_rate;
  auto& verbose = options.verbose;
  auto& sample = options.sample;
  auto& backtrace = options.backtrace;
  auto& deepbind = options.deepbind;
  auto& zero_freed = options.zero_freed;
  auto& protocol = options.protocol;
  auto& support_cores = options.support_cores;
  auto& support_cpus = options.support_cpus;
#define ANNEX_OPTION(identifier, name, standard, values, description) read(name, standard, values, &identifier);
#include "os/options.def"
#undef ANNEX_OPTION
  if (profile_rate == 0) {
    profile_rate = Options().profile_rate;
    warn("ANNEX_PROFILE_RATE=0 is not understood (at least 1); using 512K");
  }
}

}  // namespace annex::os
