// Names of functions: see names.h.
#include "profile/names.h"

#include <cxxabi.h>

#include <cctype>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace annex::inspect {
namespace {

constexpr std::string_view kOperator = "operator";
constexpr std::string_view kAnonymous = "(anonymous namespace)";

bool in_word(char letter) { return std::isalnum(static_cast<unsigned char>(letter)) || letter == '_'; }

bool operator_at(std::string_view name, size_t place) {
  return name.substr(place).starts_with(kOperator) && (place == 0 || !in_word(name[place - 1])) &&
         (place + kOperator.size() == name.size() || !in_word(name[place + kOperator.size()]));
}

// "operator" and what it is of, whose signs open and close nothing: operator<, operator(), operator new[].
std::string_view operator_of(std::string_view name, size_t place) {
  size_t end = place + kOperator.size();
  if (name.substr(end).starts_with("()")) return name.substr(place, end + 2 - place);
  if (end < name.size() && name[end] == ' ') {  // new, delete, a type to which it converts
    end = name.find_first_of("(<", end);
  } else {
    end = name.find_first_not_of("<>=!+-*/%^&|~,[]", end);
  }
  return name.substr(place, end == std::string_view::npos ? end : end - place);
}

// Where the bracket that opens at `place` has been closed.
size_t behind_bracket(std::string_view name, size_t place) {
  int depth = 0;
  for (; place < name.size(); ++place) {
    if (operator_at(name, place)) {
      place += operator_of(name, place).size() - 1;
    } else if (name[place] == '<' || name[place] == '(') {
      ++depth;
    } else if (name[place] == ')' || (name[place] == '>' && name[place - 1] != '-')) {
      if (--depth == 0) return place + 1;
    }
  }
  return place;
}

// Braces are those of lambdas, "{lambda(int)#1}".
size_t behind_brace(std::string_view name, size_t place) {
  int depth = 0;
  for (; place < name.size(); ++place) {
    if (name[place] == '{') ++depth;
    if (name[place] == '}' && --depth == 0) return place + 1;
  }
  return place;
}

}  // namespace

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&free)> plain(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                     &free);
  return name.starts_with("_Z") && plain ? plain.get() : name;
}

std::string short_name(const std::string& name) {
  const std::string_view whole = name;
  std::string kept;
  for (size_t place = 0; place < whole.size();) {
    if (operator_at(whole, place)) {
      const auto part = operator_of(whole, place);
      kept += part;
      place += part.size();
      continue;
    }
    size_t end = place + 1;
    if (whole.substr(place).starts_with(kAnonymous)) {
      end = place + kAnonymous.size();
    } else if (whole[place] == '{') {
      kept += "{lambda}";
      place = behind_brace(whole, place);
      continue;
    } else if (whole[place] == '<' || whole[place] == '(') {
      if (place > 0) {
        place = behind_bracket(whole, place);
        continue;
      }
    } else if (whole[place] == ' ') {
      // What was before is the type of the result; what comes after the parameters ends the name.
      const bool after_parameters =
          place > 0 && whole[place - 1] == ')' && !whole.substr(0, place).ends_with(kAnonymous);
      if (after_parameters) break;
      kept.clear();
      ++place;
      continue;
    }
    kept += whole.substr(place, end - place);
    place = end;
  }
  return kept.empty() ? name : kept;
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace annex::inspect
