// Words of the simulated machine that every unit uses.
#pragma once

#include <cstddef>
#include <cstdint>

namespace annex::sim {

using Cycles = uint64_t;   // of the simulated cores' clock, since the machine was switched on
using Address = uint64_t;  // of the simulated program; virtual, which is all that user mode shows

inline constexpr unsigned kLineShift = 6;
inline constexpr Address kLine = Address{1} << kLineShift;  // bytes
inline constexpr unsigned kPageShift = 12;
inline constexpr unsigned kHugePageShift = 21;
inline constexpr unsigned kMaxCores = 128;

constexpr Address line_of(Address address) { return address >> kLineShift; }
constexpr Address page_of(Address address) { return address >> kPageShift; }
// A frame for each page, as if it had been found by chance: a fixed permutation of the numbers of 36 bits.
constexpr Address scattered_frame(Address page) {
  constexpr Address kMask = (Address{1} << 36) - 1;
  page = (page ^ page >> 19) * 0x9E3779B97F4A7C15u & kMask;
  page = (page ^ page >> 19) * 0xC2B2AE3D27D4EB4Fu & kMask;
  return page ^ page >> 19;
}
// The first page of the 2 MiB that an address is in.
constexpr Address first_page_of_huge(Address address) {
  return address >> kHugePageShift << (kHugePageShift - kPageShift);
}

// Whose instruction it is. Between entry and return of malloc, free and their family it is the allocator's.
enum class Origin : uint8_t { kProgram, kAllocator };

// Where a cycle went: each is charged to what held up the oldest instruction then.
enum class Cause : uint8_t {
  kBase,  // the program's own dependencies, and the core's width and ports
  kL1,    // waiting for loads that hit in L1, and for store-to-load forwarding
  kL2,
  kLlc,
  kDram,
  kCoherence,  // lines in another core's cache
  kTlb,        // page walks
  kFetch,      // instruction cache and instruction TLB
  kBranch,     // wrong predictions
  kAtomic,     // locked instructions and fences
  kPageFault,
  kSystemCall,
  kUnit,  // waiting for a hardware unit
  kIdle,  // no thread to run
};
inline constexpr size_t kCauses = static_cast<size_t>(Cause::kIdle) + 1;
const char* name_of(Cause cause);

}  // namespace annex::sim
