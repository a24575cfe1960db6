// Guards: see guards.h.
#include "os/guards.h"

#include <atomic>

#include "os/pages.h"
#include "os/small_file.h"
#include "os/system_call.h"

namespace annex::os {

namespace {

// MADV_GUARD_INSTALL and MADV_GUARD_REMOVE, which no libc of Debian 12 names.
constexpr long kInstall = 102;
constexpr long kRemove = 103;

long advise(void* start, size_t bytes, long advice) {
  return system_call(SYS_madvise, reinterpret_cast<long>(start), static_cast<long>(bytes), advice);
}

enum class Marks : uint8_t { kUntried, kWork, kRefused };
constinit std::atomic<Marks> marks{Marks::kUntried};

// A mark takes eight bytes for each page, and the page tables that they are in: more than a mapping does, for so much.
constexpr size_t kMostMarked = size_t{2} << 20;

bool mark(void* start, size_t bytes) {
  const Marks known = marks.load(std::memory_order_relaxed);
  if (known == Marks::kRefused || bytes > kMostMarked) return false;
  const bool done = advise(start, bytes, kInstall) == 0;
  if (done && known == Marks::kWork) return true;
  // QEMU's user mode takes whatever advice it does not know for done.
  if (done && !is_readable(start)) {
    marks.store(Marks::kWork, std::memory_order_relaxed);
    return true;
  }
  // What was marked before it was refused is not any more. Marks can be removed from locked memory, which can't be
  // marked: where that is refused too, it is for good.
  const bool removed = advise(start, bytes, kRemove) == 0;
  if (done || !removed) marks.store(Marks::kRefused, std::memory_order_relaxed);
  return false;
}

// The budget of mappings.
constexpr int64_t kForOne = 2;
constexpr int64_t kUsual = 65530;
constinit std::atomic<int64_t> mappings_left{kUsual / 2};

bool take_mappings() {
  int64_t left = mappings_left.load(std::memory_order_relaxed);
  while (left >= kForOne) {
    if (mappings_left.compare_exchange_weak(left, left - kForOne, std::memory_order_relaxed)) return true;
  }
  return false;
}

void return_mappings() { mappings_left.fetch_add(kForOne, std::memory_order_relaxed); }

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
  if (mark(start, bytes)) return GuardKind::kMarked;
  if (!clean) purge(start, bytes);
  if (!take_mappings()) return GuardKind::kNone;
  if (forbid(start, bytes)) return GuardKind::kMapped;
  return_mappings();
  return GuardKind::kNone;
}

bool remove_guard(GuardKind kind, void* start, size_t bytes) {
  if (kind == GuardKind::kMapped) return_mappings();
  // Another mapping in its place has no marks. (A filter of system calls may have come since they were made.)
  return kind != GuardKind::kMarked || advise(start, bytes, kRemove) == 0 || discard(start, bytes);
}

}  // namespace annex::os
