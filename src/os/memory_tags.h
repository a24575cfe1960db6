// Memory tags (the Memory Tagging Extension of AArch64): four bits for each 16 bytes of memory, and the same four in a
// pointer, bits 56 to 59. A load or store through a pointer whose tag is not the memory's ends in a fault (SIGSEGV).
//
// Synchronization: none; memory is tagged by whoever it belongs to.
#pragma once

#include <cstddef>
#include <cstdint>

namespace annex::os {

#ifdef __aarch64__

// Whether there are tags. Decided by enable_memory_tags(), before there is a second thread.
extern constinit bool memory_tags;

// Turns tag checks on, in this thread and those that it starts. Memory that is committed from here on (os/pages.h) can
// have tags, and has tag 0 at first. False where the machine or the system has no tags.
bool enable_memory_tags();

inline void* without_tag(const void* pointer) {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(pointer) & ((uintptr_t{1} << 56) - 1));
}

// The address, with the tag that the memory there has.
inline void* with_tag_of(const void* address) {
  void* tagged = const_cast<void*>(address);
  asm volatile(".arch armv8.5-a+memtag\n\tldg %0, [%1]" : "+r"(tagged) : "r"(address));
  return tagged;
}

// Gives `bytes` of memory, a multiple of 16, the pointer's tag.
inline void set_tag(void* tagged, size_t bytes) {
  for (char *at = static_cast<char*>(tagged), *end = at + bytes; at < end; at += 16) {
    asm volatile(".arch armv8.5-a+memtag\n\tstg %0, [%0]" : : "r"(at) : "memory");
  }
}

// The same address with a random tag, which is neither 0 nor that of one of two other pointers.
inline void* with_random_tag(void* address, const void* other, const void* another) {
  const auto bit_of = [](const void* pointer) {
    return uint64_t{1} << (reinterpret_cast<uintptr_t>(pointer) >> 56 & 15);
  };
  const uint64_t excluded = 1 | bit_of(other) | bit_of(another);
  void* tagged;
  asm volatile(".arch armv8.5-a+memtag\n\tirg %0, %1, %2" : "=r"(tagged) : "r"(address), "r"(excluded));
  return tagged;
}

#else

inline constexpr bool memory_tags = false;
inline bool enable_memory_tags() { return false; }
inline void* without_tag(const void* pointer) { return const_cast<void*>(pointer); }
inline void* with_tag_of(const void* address) { return const_cast<void*>(address); }
inline void set_tag(void*, size_t) {}
inline void* with_random_tag(void* address, const void*, const void*) { return address; }

#endif

}  // namespace annex::os
