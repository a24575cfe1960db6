// glibc's extras around malloc: tuning, trimming and reports, answered from Annex's own statistics.
#include <malloc.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>

#include "entry/visibility.h"
#include "front/front.h"
#include "observe/report.h"

using namespace annex;

namespace {

// By glibc's meanings: arena and hblkhd (hblks large blocks, each mapped by itself there, spans here) make up what was
// taken from the system; of arena, uordblks is in use and fordblks free, in ordblks pieces.
struct mallinfo2 describe(const observe::Statistics& stats) {
  struct mallinfo2 info = {};
  info.arena = stats.slabs + stats.dirty;
  info.ordblks = stats.free_pieces;
  info.hblks = stats.spans;
  info.hblkhd = stats.used_spans;
  info.uordblks = stats.used - stats.used_spans;
  info.fordblks = info.arena - info.uordblks;
  info.keepcost = stats.dirty;
  return info;
}

int saturated(size_t value) { return value > INT_MAX ? INT_MAX : static_cast<int>(value); }

}  // namespace

extern "C" {

ANNEX_EXPORT struct mallinfo2 mallinfo2(void) noexcept { return describe(observe::gather()); }

// The old form: its int fields stop at INT_MAX instead of wrapping.
ANNEX_EXPORT struct mallinfo mallinfo(void) noexcept {
  const struct mallinfo2 info = describe(observe::gather());
  struct mallinfo old = {};
  old.arena = saturated(info.arena);
  old.ordblks = saturated(info.ordblks);
  old.hblks = saturated(info.hblks);
  old.hblkhd = saturated(info.hblkhd);
  old.uordblks = saturated(info.uordblks);
  old.fordblks = saturated(info.fordblks);
  old.keepcost = saturated(info.keepcost);
  return old;
}

// glibc's parameters describe glibc's heap. The known ones are accepted and have no effect (1: success), as programs
// expect; others are refused (0).
ANNEX_EXPORT int mallopt(int parameter, int) noexcept {
  return parameter == M_MXFAST || (parameter <= M_TRIM_THRESHOLD && parameter >= M_ARENA_MAX);
}

ANNEX_EXPORT int malloc_trim(size_t) noexcept { return Front::give_back() > 0; }

ANNEX_EXPORT void malloc_stats(void) noexcept {
  char buffer[4096];
  os::Text text(buffer, sizeof buffer);
  observe::as_text(observe::gather(), text);
  os::write_all(STDERR_FILENO, text.data(), text.stored());
}

ANNEX_EXPORT int malloc_info(int options, FILE* stream) noexcept {
  if (options != 0) return EINVAL;
  const observe::Statistics stats = observe::gather();
  const struct mallinfo2 info = describe(stats);
  fprintf(
      stream,
      "<malloc version=\"annex-%s\">\n<system type=\"current\" size=\"%zu\"/>\n<system type=\"max\" size=\"%zu\"/>\n"
      "<total type=\"rest\" count=\"%zu\" size=\"%zu\"/>\n<total type=\"mmap\" count=\"%zu\" "
      "size=\"%zu\"/>\n</malloc>\n",
      annex_version(), info.arena + info.hblkhd, static_cast<size_t>(stats.peak_in_use), info.ordblks, info.fordblks,
      info.hblks, info.hblkhd);
  return 0;
}

}  // extern "C"
