// The frames of a profile, each once, as JSON formats have them: call stacks are numbers in the table.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "profile/profile.h"

namespace annex::inspect {

struct TableFrame {
  const CodeLine* line;  // nullptr: there is no call stack
  size_t module;         // or kNoModule

  std::string name() const { return line == nullptr ? "(no call stack)" : line->function; }
};

// What is one frame: a line of a function, or the whole function.
enum class FrameOf { kLine, kFunction };

class FrameTable {
 public:
  explicit FrameTable(FrameOf what) : what_(what) {}
  // The outermost first, at least one.
  std::vector<size_t> stack(const Profile& profile, const Site& site);
  const std::vector<TableFrame>& frames() const { return frames_; }

 private:
  size_t number_of(const TableFrame& frame);

  FrameOf what_;
  std::vector<TableFrame> frames_;
  std::map<std::tuple<std::string, std::string, uint64_t, size_t>, size_t> known_;
};

}  // namespace annex::inspect
