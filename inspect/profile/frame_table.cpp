// The frames of a profile, each once: see frame_table.h.
#include "profile/frame_table.h"

#include <algorithm>

namespace annex::inspect {

std::vector<size_t> FrameTable::stack(const Profile& profile, const Site& site) {
  std::vector<size_t> numbers;
  for (const size_t index : site.places) {
    const Place& place = profile.places[index];
    for (const CodeLine& line : place.lines) numbers.push_back(number_of({&line, place.frame.module}));
  }
  if (numbers.empty()) numbers.push_back(number_of({nullptr, kNoModule}));
  std::reverse(numbers.begin(), numbers.end());
  return numbers;
}

size_t FrameTable::number_of(const TableFrame& frame) {
  const CodeLine none{};
  const CodeLine& line = frame.line == nullptr ? none : *frame.line;
  const uint64_t number = what_ == FrameOf::kLine ? line.line : line.first_line;
  const auto [place, first] = known_.try_emplace({frame.name(), line.file, number, frame.module}, frames_.size());
  if (first) frames_.push_back(frame);
  return place->second;
}

}  // namespace annex::inspect
