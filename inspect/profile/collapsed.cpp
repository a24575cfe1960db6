// Collapsed stacks, as flamegraph.pl and inferno read them: a line for each call stack, its functions from the
// outermost in with semicolons between, a space, a number.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "profile/formats.h"

namespace annex::inspect {
namespace {

// What would end a function or a line.
std::string safe(std::string name) {
  std::replace(name.begin(), name.end(), ';', ':');
  std::replace(name.begin(), name.end(), '\n', ' ');
  return name;
}

}  // namespace

std::string collapsed(const Profile& profile, Value value) {
  std::map<std::string, double> stacks;
  for (const Site& site : profile.sites) {
    const auto lines = profile.lines_of(site);
    std::string stack;
    for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
      if (!stack.empty()) stack += ';';
      stack += safe((*line)->function);
    }
    stacks[stack.empty() ? "(no call stack)" : stack] += site.values[value];
  }
  std::string text;
  for (const auto& [stack, number] : stacks) {
    if (std::llround(number) > 0) text += fmt::format("{} {}\n", stack, std::llround(number));
  }
  return text;
}

}  // namespace annex::inspect
