// Which lines a cache fetches ahead of the program.
//
// Models, by name (CacheParameters::prefetcher):
//   none
//   next-line   on a miss, the next line of the page;
//   stride      streams by page: after two equal steps between the lines of a page that were observed, the next
//               kDegree lines at that step. Observed are misses and first uses of prefetched lines.
// Prefetches stay within the page of 4 KiB, since the next page's place in memory is not known to the cache.
// Simplifications: the program counter is not used; a page has one stream.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "machine/types.h"

namespace annex::sim {

class Prefetcher {
 public:
  static constexpr size_t kDegree = 2;

  // Lines to fetch ahead.
  struct Lines {
    std::array<Address, kDegree> line;
    size_t count = 0;
  };

  explicit Prefetcher(std::string_view name)
      : kind_(name == "next-line" ? Kind::kNextLine
              : name == "stride"  ? Kind::kStride
                                  : Kind::kNone),
        streams_(kind_ == Kind::kStride ? kStreams : 0) {}

  bool active() const { return kind_ != Kind::kNone; }

  // A demand access missed (or else used a prefetched line for the first time).
  Lines observe(Address line, bool missed) {
    Lines lines;
    if (kind_ == Kind::kNextLine && missed) {
      add(lines, line, 1);
    } else if (kind_ == Kind::kStride) {
      const int64_t step = step_of(line);
      for (size_t ahead = 1; step != 0 && ahead <= kDegree; ++ahead)
        add(lines, line, step * static_cast<int64_t>(ahead));
    }
    return lines;
  }

  void clear() { streams_.assign(streams_.size(), Stream{}); }

 private:
  enum class Kind : uint8_t { kNone, kNextLine, kStride };
  static constexpr size_t kStreams = 64;
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
    Stream& stream = streams_[page % kStreams];
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
  std::vector<Stream> streams_;  // direct-mapped by page
};

}  // namespace annex::sim
