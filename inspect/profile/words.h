// The words of one line of a raw file, one after the other.
#pragma once

#include <charconv>
#include <cstdint>
#include <exception>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace annex::inspect {

// The line is not what it has to be. The reader says which it was.
struct BadLine : std::exception {};

class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}

  bool more() const { return !rest_.empty(); }

  std::string_view next() {
    if (rest_.empty()) throw BadLine();
    const size_t end = rest_.find(' ');
    const std::string_view word = rest_.substr(0, end);
    rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
    if (word.empty()) throw BadLine();
    return word;
  }

  // All that is left.
  std::string_view rest() { return std::exchange(rest_, {}); }

  template <class Number = uint64_t>
  Number number(int base = 10) {
    return parse<Number>(next(), base);
  }

  template <class Number = uint64_t>
  static Number parse(std::string_view word, int base = 10) {
    Number value{};
    std::from_chars_result result{};
    if constexpr (std::is_floating_point_v<Number>) {
      result = std::from_chars(word.data(), word.data() + word.size(), value, std::chars_format::fixed);
    } else {
      result = std::from_chars(word.data(), word.data() + word.size(), value, base);
    }
    const bool in_range = value >= Number{} && value <= std::numeric_limits<Number>::max();  // nan and inf are not
    if (result.ec != std::errc() || result.ptr != word.data() + word.size() || !in_range) throw BadLine();
    return value;
  }

 private:
  std::string_view rest_;
};

// Without its backslashes: "\s" is a space, "\n" a newline.
inline std::string unescaped(std::string_view word) {
  std::string plain;
  for (size_t i = 0; i < word.size(); ++i) {
    if (word[i] != '\\') {
      plain += word[i];
      continue;
    }
    if (++i == word.size()) throw BadLine();
    switch (word[i]) {
      case 's':
        plain += ' ';
        break;
      case 'n':
        plain += '\n';
        break;
      case '\\':
        plain += '\\';
        break;
      default:
        throw BadLine();
    }
  }
  return plain;
}

}  // namespace annex::inspect
