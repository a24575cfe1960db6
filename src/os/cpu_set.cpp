// Sets of CPUs: see cpu_set.h.
#include "os/cpu_set.h"

#include <bit>

namespace annex::os {

namespace {

template <class Combine>
CpuSet word_by_word(const CpuSet& a, const CpuSet& b, Combine combine) {
  CpuSet set;
  for (size_t i = 0; i < kMaxCpus / 64; ++i) set.words[i] = combine(a.words[i], b.words[i]);
  return set;
}

}  // namespace

size_t CpuSet::count() const {
  size_t sum = 0;
  for (const uint64_t word : words) sum += static_cast<size_t>(std::popcount(word));
  return sum;
}

CpuSet operator&(const CpuSet& a, const CpuSet& b) {
  return word_by_word(a, b, [](uint64_t x, uint64_t y) { return x & y; });
}

CpuSet operator|(const CpuSet& a, const CpuSet& b) {
  return word_by_word(a, b, [](uint64_t x, uint64_t y) { return x | y; });
}

CpuSet operator-(const CpuSet& a, const CpuSet& b) {
  return word_by_word(a, b, [](uint64_t x, uint64_t y) { return x & ~y; });
}

size_t parse_number(const char** text) {
  size_t value = 0;
  for (; **text >= '0' && **text <= '9'; ++*text) value = value * 10 + static_cast<size_t>(**text - '0');
  return value;
}

CpuSet parse_cpu_list(const char* text) {
  CpuSet set;
  while (*text >= '0' && *text <= '9') {
    const size_t from = parse_number(&text);
    size_t to = from;
    if (*text == '-') to = parse_number(&++text);
    for (size_t cpu = from; cpu <= to && cpu < kMaxCpus; ++cpu) set.add(cpu);
    if (*text == ',') ++text;
  }
  return set;
}

}  // namespace annex::os
