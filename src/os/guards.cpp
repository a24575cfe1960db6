// Guards: see guards.h.
#include "os/guards.h"

#include <atomic>

#include "os/pages.h"
#include "os/small_file.h"
#include "os/system_call.h"

namespace annex::os {

namespace {

// MADV_GUARD_INSTALL and MADV_GUARD_REMOVE, which no libc of Debian 12 names.
constexpr long kAdviceInstall = 102;
constexpr long kAdviceRemove = 103;

long advise(void* start, size_t bytes, long advice) {
  return system_call(SYS_madvise, reinterpret_cast<long>(start), static_cast<long>(bytes), advice);
}

// Whether guards can be installed here.
enum class Support : uint8_t { kUntried, kWorks, kRefused };
constinit std::atomic<Support> support{Support::kUntried};

// An installed guard takes eight bytes of page table for each page: above this size, more than a mapping takes.
constexpr size_t kMaxInstalledBytes = size_t{2} << 20;

bool install(void* start, size_t bytes) {
  const Support known = support.load(std::memory_order_relaxed);
  if (known == Support::kRefused || bytes > kMaxInstalledBytes) return false;
  const bool done = advise(start, bytes, kAdviceInstall) == 0;
  if (done && known == Support::kWorks) return true;
  // QEMU's user mode says that it has done whatever advice it does not know.
  if (done && !is_readable(start)) {
    support.store(Support::kWorks, std::memory_order_relaxed);
    return true;
  }
  // The kernel may have installed a part before it refused. Memory that is locked is refused a guard, but not a guard's
  // removal; where removal is refused too, guards are not tried again.
  const bool removed = advise(start, bytes, kAdviceRemove) == 0;
  if (done || !removed) support.store(Support::kRefused, std::memory_order_relaxed);
  return false;
}

// The budget of mappings.
constexpr int64_t kMappingsPerGuard = 2;
constexpr int64_t kDefaultMaxMapCount = 65530;
constinit std::atomic<int64_t> mappings_left{kDefaultMaxMapCount / 2};

bool take_mappings() {
  int64_t left = mappings_left.load(std::memory_order_relaxed);
  while (left >= kMappingsPerGuard) {
    if (mappings_left.compare_exchange_weak(left, left - kMappingsPerGuard, std::memory_order_relaxed)) return true;
  }
  return false;
}

void return_mappings() { mappings_left.fetch_add(kMappingsPerGuard, std::memory_order_relaxed); }

}  // namespace

void set_guard_budget() {
  char text[32];
  int64_t all = 0;
  for (const char* digit = read_file("/proc/sys/vm/max_map_count", text); *digit >= '0' && *digit <= '9'; ++digit) {
    all = 10 * all + (*digit - '0');
  }
  if (all > 0) mappings_left.store(all / 2, std::memory_order_relaxed);
}

GuardKind add_guard(void* start, size_t bytes, bool clean) {
  if (install(start, bytes)) return GuardKind::kInstalled;
  if (!clean) purge(start, bytes);
  if (!take_mappings()) return GuardKind::kNone;
  if (forbid(start, bytes)) return GuardKind::kMapped;
  return_mappings();
  return GuardKind::kNone;
}

bool remove_guard(GuardKind kind, void* start, size_t bytes) {
  if (kind == GuardKind::kMapped) return_mappings();
  // A filter of system calls may have come since the guard was installed, and refuse its removal: then a new mapping
  // takes the place, which has no guards.
  return kind != GuardKind::kInstalled || advise(start, bytes, kAdviceRemove) == 0 || discard(start, bytes);
}

}  // namespace annex::os
