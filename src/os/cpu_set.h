// A set of CPUs, and the kernel's way of writing one.
//
// Synchronization: none; plain computation.
#pragma once

#include <cstddef>
#include <cstdint>

namespace annex::os {

inline constexpr size_t kMaxCpus = 1024;

struct CpuSet {
  uint64_t words[kMaxCpus / 64] = {};

  bool has(size_t cpu) const { return cpu < kMaxCpus && (words[cpu / 64] >> (cpu % 64) & 1) != 0; }
  void add(size_t cpu) {
    if (cpu < kMaxCpus) words[cpu / 64] |= uint64_t{1} << (cpu % 64);
  }
  size_t count() const;
  bool empty() const { return count() == 0; }
};

// Intersection, union and difference.
CpuSet operator&(const CpuSet& a, const CpuSet& b);
CpuSet operator|(const CpuSet& a, const CpuSet& b);
CpuSet operator-(const CpuSet& a, const CpuSet& b);

// A list as the kernel writes it: "0-3,8,10-11".
CpuSet parse_cpu_list(const char* text);
// The number at *text, which is moved to what follows it; 0 where there is none.
size_t parse_number(const char** text);

}  // namespace annex::os
