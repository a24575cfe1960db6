// Reads and writes the program's memory, which is the host process's own (QEMU's guest base is 0). Through
// /proc/self/mem, so that what is not there, or must not be written, is an error and no fault.
#pragma once

#include <cstdint>
#include <optional>

#include "machine/types.h"

namespace annex::sim {

bool read_guest(Address address, void* out, size_t bytes);
bool write_guest(Address address, const void* data, size_t bytes);

template <class T>
std::optional<T> read_guest(Address address) {
  T value;
  if (!read_guest(address, &value, sizeof(T))) return {};
  return value;
}

template <class T>
bool write_guest(Address address, const T& value) {
  return write_guest(address, &value, sizeof(T));
}

}  // namespace annex::sim
