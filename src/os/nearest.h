// Spelling suggestions: for the settings' names and for the launcher's arguments.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace annex::os {

// The edit distance (Damerau and Levenshtein's): how many letters have to be changed, inserted, left out, or exchanged
// with the next one, to turn one word into the other. Something large where a word is too long.
inline size_t distance(const char* a, const char* b) {
  constexpr size_t kLongest = 40;
  const size_t n = strlen(a);
  const size_t m = strlen(b);
  if (n > kLongest || m > kLongest) return kLongest;
  uint8_t of[kLongest + 1][kLongest + 1];
  for (size_t i = 0; i <= n; ++i) {
    for (size_t j = 0; j <= m; ++j) {
      if (i == 0 || j == 0) {
        of[i][j] = static_cast<uint8_t>(i + j);
        continue;
      }
      const int change = a[i - 1] == b[j - 1] ? 0 : 1;
      int least = std::min({of[i - 1][j] + 1, of[i][j - 1] + 1, of[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) least = std::min(least, of[i - 2][j - 2] + 1);
      of[i][j] = static_cast<uint8_t>(least);
    }
  }
  return of[n][m];
}

// The one of the words that was probably meant: the nearest, if at most a third of the letters differ, or else one that
// begins with the given word. nullptr where there is none.
template <size_t kCount>
const char* nearest(const char* word, const char* const (&words)[kCount]) {
  const char* found = nullptr;
  size_t least = strlen(word) / 3 + 1;
  for (const char* candidate : words) {
    const size_t far = distance(word, candidate);
    if (far < least) {
      found = candidate;
      least = far;
    }
  }
  for (const char* candidate : words) {
    if (found == nullptr && strlen(word) >= 3 && strncmp(word, candidate, strlen(word)) == 0) found = candidate;
  }
  return found;
}

}  // namespace annex::os
