// Markers: how the source of an allocator tells a hardware unit what it is about to do (Mallacc 5: "special x86 marker
// instructions"), and how a program says what a simulation is about. They are what src/experiments/mallacc_markers.h
// and include/annex/region.h, which such sources include, put into the program:
//
//   eb 00                      jmp to the next instruction: QEMU begins a new block there
//   (4x) 0f 1f 84 xx imm32     nop disp32(first, second): disp32 names the marker, its address registers have the
//   values
//
// On a processor the second is a nop with an odd address. Here both cost nothing at all; but a jump to the next
// instruction that is no marker is a jump.
#pragma once

#include <cstdint>
#include <span>

#include "machine/uop.h"

namespace annex::sim {

// The numbers are those of src/experiments/mallacc_markers.h, and the last two of include/annex/region.h.
enum class MarkerKind : uint8_t {
  kNone,
  kSizeBegin,    // size: its class is to be found
  kSizeEnd,      // class, bytes of its blocks
  kSizeClass,    // class: the end, where nobody asks for the bytes
  kSizeLeft,     // it has none
  kPopBegin,     // class
  kPopEnd,       // first block of its list, the one after it
  kPopLeft,      // the list was empty
  kPrefetch,     // class, the block that its list now begins with
  kPushBegin,    // class, block
  kPushEnd,      //
  kDrop,         // class: its list is changed by other means
  kSampleBegin,  // bytes
  kSampleEnd,    //
  kSampleLeft,   // a sample is due
  kSizeAlone,    // class: the end of a look-up, where no caller needs the bytes
  kRegionBegin,  // of interest
  kRegionEnd,
};
inline constexpr unsigned kMarkerKinds = static_cast<unsigned>(MarkerKind::kRegionEnd) + 1;

constexpr bool is_of_region(const Marker& marker) {
  return marker.kind >= static_cast<uint8_t>(MarkerKind::kRegionBegin);
}

inline constexpr uint32_t kMarkerName = 0x6d6c6300;  // and the kind

inline bool is_jump_to_next(std::span<const uint8_t> instruction) {
  return instruction.size() == 2 && instruction[0] == 0xeb && instruction[1] == 0;
}

// How long the marker would be that begins with that byte.
inline size_t marker_bytes(uint8_t first) { return first == 0x0f ? 8 : 9; }

// Its kind is 0 for any other instruction.
inline Marker marker_in(std::span<const uint8_t> instruction) {
  uint8_t high = 0;  // of REX: whether base and index are of r8 to r15
  if (instruction.size() == 9 && (instruction[0] & 0xf0) == 0x40) {
    high = instruction[0];
    instruction = instruction.subspan(1);
  }
  if (instruction.size() != 8 || instruction[0] != 0x0f || instruction[1] != 0x1f || instruction[2] != 0x84) return {};
  uint32_t name = 0;
  for (unsigned i = 0; i < 4; ++i) name |= uint32_t{instruction[4 + i]} << (8 * i);
  if (name <= kMarkerName || name >= kMarkerName + kMarkerKinds) return {};
  const unsigned base = (instruction[3] & 7) | (high & 1) << 3;
  const unsigned index = (instruction[3] >> 3 & 7) | (high & 2) << 2;
  return {.kind = static_cast<uint8_t>(name - kMarkerName),
          .first = static_cast<Register>(kFirstInteger + base),
          .second = static_cast<Register>(kFirstInteger + index)};
}

}  // namespace annex::sim
