// Which lines a cache fetches ahead of the program.
//
// Models, by name (CacheParameters::prefetcher):
//   none
//   next-line   on a miss, the next line of the page;
//   stride      streams by page: after two equal steps between the lines of a page that were observed, the next
//               prefetch_degree lines at that step. Observed are misses and first uses of prefetched lines.
// Parameters: CacheParameters (prefetcher, prefetch_degree, prefetch_streams).
// Prefetches stay within the page of 4 KiB, since the next page's place in memory is not known to the cache.
// Simplifications: the program counter is not used; a page has one stream.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "machine/cache.h"
#include "machine/parameters.h"
#include "machine/request.h"
#include "machine/types.h"

namespace annex::sim {

struct PrefetcherStatistics {
  uint64_t observed = 0;
  uint64_t proposed = 0;
  uint64_t issued = 0;
  uint64_t dropped = 0;
  uint64_t useful = 0;
  uint64_t late = 0;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("observed", self.observed, "misses and first uses of prefetched lines that it was shown");
    visit("proposed", self.proposed, "lines that it wanted");
    visit("issued", self.issued, "of these: fetched into its cache, which did not have them");
    visit("dropped", self.dropped, "of these: not fetched, because no register for a miss was free");
    visit("useful", self.useful, "of the issued: used by a demand access before eviction");
    visit("late", self.late, "of the useful: still on their way then");
  }
};

class Prefetcher {
 public:
  static constexpr size_t kMostDegree = 16;

  // Lines to fetch ahead.
  struct Lines {
    std::array<Address, kMostDegree> line;
    size_t count = 0;
  };

  explicit Prefetcher(const CacheParameters& parameters)
      : kind_(parameters.prefetcher == "next-line" ? Kind::kNextLine
              : parameters.prefetcher == "stride"  ? Kind::kStride
                                                   : Kind::kNone),
        degree_(parameters.prefetch_degree),
        streams_(kind_ == Kind::kStride ? parameters.prefetch_streams : 0) {}

  bool active() const { return kind_ != Kind::kNone; }

  // A demand access missed (or else used a prefetched line for the first time).
  Lines observe(Address line, bool missed) {
    ++statistics.observed;
    Lines lines;
    if (kind_ == Kind::kNextLine && missed) {
      add(lines, line, 1);
    } else if (kind_ == Kind::kStride) {
      const int64_t step = step_of(line);
      for (size_t ahead = 1; step != 0 && ahead <= degree_; ++ahead)
        add(lines, line, step * static_cast<int64_t>(ahead));
    }
    statistics.proposed += lines.count;
    return lines;
  }

  // A demand access finds a line in the cache, on its way still or not: whether it was prefetched and this is its first
  // use.
  Event first_use(Line& line, bool late) {
    if (!line.prefetched) return Event::kNone;
    line.prefetched = false;
    ++statistics.useful;
    statistics.late += late;
    return Event::kFirstUse;
  }

  void clear() {
    streams_.assign(streams_.size(), Stream{});
    statistics = {};
  }

  PrefetcherStatistics statistics;

 private:
  enum class Kind : uint8_t { kNone, kNextLine, kStride };
  static constexpr unsigned kLinesInPageShift = kPageShift - kLineShift;

  struct Stream {
    Address page = ~Address{0};
    Address last = 0;  // line
    int64_t step = 0;  // lines
    uint8_t repeats = 0;
  };

  static void add(Lines& lines, Address line, int64_t step) {
    const Address ahead = line + static_cast<Address>(step);
    if (ahead >> kLinesInPageShift == line >> kLinesInPageShift) lines.line[lines.count++] = ahead;
  }

  // The step of the line's page if it has repeated, else 0.
  int64_t step_of(Address line) {
    const Address page = line >> kLinesInPageShift;
    Stream& stream = streams_[page % streams_.size()];
    if (stream.page != page) {
      stream = {.page = page, .last = line};
      return 0;
    }
    const int64_t step = static_cast<int64_t>(line - stream.last);
    if (step == 0) return 0;
    stream.repeats = step == stream.step ? 1 : 0;
    stream.step = step;
    stream.last = line;
    return stream.repeats != 0 ? step : 0;
  }

  Kind kind_;
  size_t degree_;
  std::vector<Stream> streams_;  // direct-mapped by page
};

}  // namespace annex::sim
