// Software prefetches of x86-64: 0f 18 /0 to /3 (prefetchnta, t0 to t2) and 0f 0d /0 to /2 (prefetch, prefetchw,
// prefetchwt1), of memory. What they name is read here, as translators tell of no access for them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "machine/types.h"

namespace annex::sim {

// Registers by their numbers in machine code.
struct Prefetch {
  static constexpr uint8_t kNone = 0xff;
  uint8_t base = kNone;
  uint8_t index = kNone;
  uint8_t scale = 0;  // a power of two
  bool thread_pointer = false;
  bool to_write = false;
  int64_t displacement = 0;  // or the address, where there is no base

  // `read`: a register's value by its number; and the base address of fs.
  template <class Read>
  Address address(Read&& read, Address thread) const {
    Address sum = static_cast<Address>(displacement);
    if (base != kNone) sum += read(base);
    if (index != kNone) sum += read(index) << scale;
    return thread_pointer ? sum + thread : sum;
  }
};

// `at`: the instruction's own address. None for any other instruction.
inline std::optional<Prefetch> prefetch_in(std::span<const uint8_t> code, Address at) {
  Prefetch found;
  size_t i = 0;
  uint8_t rex = 0;
  for (; i < code.size() && code[i] != 0x0f; ++i) {
    const uint8_t byte = code[i];
    const bool prefix = byte == 0x66 || byte == 0xf2 || byte == 0xf3 || (byte & 0xe7) == 0x26 || (byte & 0xfe) == 0x64;
    if (!prefix && (byte & 0xf0) != 0x40) return {};  // 67, of 32-bit addresses, too: no compiler makes one
    rex = (byte & 0xf0) == 0x40 ? byte : 0;
    found.thread_pointer = found.thread_pointer || byte == 0x64;
  }
  if (code.size() < i + 3) return {};
  const uint8_t escape = code[i + 1];
  const uint8_t mod_rm = code[i + 2];
  const unsigned operation = mod_rm >> 3 & 7;
  if (mod_rm >= 0xc0 || !((escape == 0x18 && operation <= 3) || (escape == 0x0d && operation <= 2))) return {};
  found.to_write = escape == 0x0d && operation == 1;
  i += 3;

  const unsigned mod = mod_rm >> 6;
  const unsigned of_memory = mod_rm & 7;
  unsigned bytes = mod == 1 ? 1 : mod == 2 ? 4 : 0;
  bool relative = false;
  if (of_memory == 4) {  // SIB
    if (i >= code.size()) return {};
    const uint8_t sib = code[i++];
    const auto index = static_cast<uint8_t>((sib >> 3 & 7) | (rex & 2) << 2);
    if (index != 4) found.index = index;
    found.scale = sib >> 6;
    const bool none = (sib & 7) == 5 && mod == 0;
    if (none) bytes = 4;
    if (!none) found.base = static_cast<uint8_t>((sib & 7) | (rex & 1) << 3);
  } else if (of_memory == 5 && mod == 0) {
    relative = true;
    bytes = 4;
  } else {
    found.base = static_cast<uint8_t>(of_memory | (rex & 1) << 3);
  }
  if (code.size() < i + bytes) return {};
  uint32_t displacement = 0;
  for (unsigned k = 0; k < bytes; ++k) displacement |= uint32_t{code[i + k]} << (8 * k);
  found.displacement = bytes == 1 ? static_cast<int8_t>(displacement) : static_cast<int32_t>(displacement);
  if (relative) found.displacement += static_cast<int64_t>(at + i + bytes);
  return found;
}

}  // namespace annex::sim
