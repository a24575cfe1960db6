// Numbers and tables for people: see text.h.
#include "profile/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "profile/names.h"

namespace annex::inspect {
namespace {

bool of_standard_library(const std::string& function) {
  constexpr const char* kPrefixes[] = {
      "std::", "__gnu_cxx::", "operator new", "boost::container::", "core::", "alloc::"};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](const char* prefix) { return function.starts_with(prefix); });
}

// What calls main, or a thread's function.
bool of_start(const std::string& function) {
  constexpr const char* kNames[] = {
      "_start", "__libc_start_main", "__libc_start_main_impl", "__libc_start_call_main", "start_thread", "clone",
      "clone3", "__clone3"};
  return std::find(std::begin(kNames), std::end(kNames), function) != std::end(kNames);
}

std::string with_line(const CodeLine& line) {
  const std::string name = short_name(line.function);
  return line.line == 0 ? name : fmt::format("{} ({}:{})", name, base_name(line.file), line.line);
}

}  // namespace

std::string bytes_text(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (std::abs(bytes) >= 1023.95 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, kUnits[unit]);
}

std::string count_text(double count) {
  std::string digits = fmt::format("{:.0f}", std::abs(count));
  for (size_t place = digits.size(); place > 3;) digits.insert(place -= 3, 1, ',');
  return fmt::format("{}{}", count <= -0.5 ? "-" : "", digits);
}

std::string value_text(Value value, double number) { return in_bytes(value) ? bytes_text(number) : count_text(number); }

std::string percent_text(double part) { return fmt::format("{:.1f} %", 100 * part); }

std::string short_stack(const Profile& profile, const Site& site, size_t most) {
  std::vector<const CodeLine*> lines = profile.lines_of(site);
  if (lines.empty()) return "(no call stack)";
  while (lines.size() > 1 && of_start(lines.back()->function)) lines.pop_back();
  const auto ours = std::stable_partition(lines.begin(), lines.end(), [](const CodeLine* line) {
    return !of_standard_library(short_name(line->function));
  });
  if (ours != lines.begin()) lines.erase(ours, lines.end());
  std::string text = with_line(*lines[0]);
  for (size_t i = 1; i < std::min(lines.size(), most); ++i) text += " < " + short_name(lines[i]->function);
  return lines.size() > most ? text + " < ..." : text;
}

std::string labels_text(const Labels& labels) {
  std::string text;
  for (const auto& [key, value] : labels) text += fmt::format("{}{}={}", text.empty() ? " [" : " ", key, value);
  return text.empty() ? "" : text + "]";
}

std::string Columns::text() const {
  std::vector<size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows_) {
    for (size_t i = 0; i + 1 < row.size(); ++i) text += fmt::format("{:>{}}  ", row[i], widths[i]);
    text += row.back() + "\n";
  }
  return text;
}

}  // namespace annex::inspect
