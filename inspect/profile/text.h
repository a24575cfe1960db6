// Numbers and tables for people.
#pragma once

#include <string>
#include <vector>

#include "profile/profile.h"

namespace annex::inspect {

std::string bytes_text(double bytes);  // "1.5 MiB"
std::string count_text(double count);  // "12,345"
std::string value_text(Value value, double number);
std::string percent_text(double part);  // "12.3 %"

// The functions of a call stack on one line, the innermost first: those of the standard library are left out, and what
// is more than `most`.
std::string short_stack(const Profile& profile, const Site& site, size_t most = 5);

std::string labels_text(const Labels& labels);  // " [key=value key=value]", or ""

// Columns of text, to the right but for the last, which is to the left.
class Columns {
 public:
  explicit Columns(std::vector<std::string> heads) { rows_.push_back(std::move(heads)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace annex::inspect
